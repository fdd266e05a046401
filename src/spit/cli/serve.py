"""``spit serve``: the explorer's page and the HTTP service."""

import socket

from spit.cli.console import show, waiting
from spit.errors import MissingExtra
from spit.serve.options import ServeOptions

BACKLOG = 512  # connections that wait to be accepted


def serve(options: ServeOptions) -> int:
    """Serve the explorer's page and an HTTP API.

    Prints the address; the page is there, and the API's documentation below /docs. Only this machine can reach it
    unless --host says otherwise, which needs --token. An interrupt finishes the requests that were taken.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise MissingExtra("FastAPI, uvicorn, python-multipart and prometheus-client", "serve", "spit serve") from error
    from spit.serve.app import create_app

    with waiting("Loading the model"):
        app = create_app(options)
    address = f"[{options.host}]" if ":" in options.host else options.host
    with socket.socket(socket.AF_INET6 if ":" in options.host else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((options.host, options.port))
            listener.listen(BACKLOG)  # the address works once it is printed
        except OSError as error:
            raise ValueError(f"expected a free port and an address of this machine, got {options.host} port "
                             f"{options.port} ({error.strerror}); --port 0 takes a free one") from None
        show(f"The explorer is at http://{address}:{listener.getsockname()[1]}/ (stop with Ctrl-C)", "bold green")
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, date_header=False,
                                timeout_graceful_shutdown=int(options.seconds) + 5, backlog=BACKLOG,
                                limit_concurrency=1000)
        uvicorn.Server(config).run([listener])
    return 0
