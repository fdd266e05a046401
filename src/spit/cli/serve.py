"""``spit serve``: the explorer's page and the HTTP service."""

import json
import socket
from contextlib import suppress
from dataclasses import dataclass

from spit.cli.console import show, tell_compiling, waiting
from spit.cli.options import Models, Running, listed
from spit.environment import environment
from spit.errors import MissingExtra
from spit.options import Options, same
from spit.serve.options import ServeOptions

BACKLOG = 512  # connections that wait to be accepted
# Kernels that torch's CPU libraries keep. Each number of tokens needs its own, and by default they keep a thousand,
# half a gigabyte after some hundred images; a pass needs about ten.
CACHES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "64"}


@dataclass(frozen=True)
class Serving(Options):
    """The models that are loaded at the start."""

    model: tuple[str, ...] = same(Models, "model", ("spit_tiny_16",))


@environment(**CACHES)  # which torch reads when it first multiplies
def serve(models: Serving, options: ServeOptions, running: Running) -> int:
    """Serve the explorer's page and an HTTP API.

    Prints the address; the page is there, and the API's description at /openapi.json. Only this machine can reach
    it unless --host says otherwise, which needs --token. Requests may name the models given, the first by default, and
    those whose weights come with spit. An interrupt finishes the requests that were taken.
    """
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise MissingExtra("FastAPI, uvicorn, python-multipart and prometheus-client", "serve", "spit serve") from error
    from spit.serve.app import create_app
    from spit.serve.models import Models as Served

    tell_compiling()
    with waiting("Loading the model"):
        app = create_app(options, Served(listed(models.model), running.device))
    address = f"[{options.host}]" if ":" in options.host else options.host
    with socket.socket(socket.AF_INET6 if ":" in options.host else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((options.host, options.port))
            listener.listen(BACKLOG)  # the address works once it is printed
        except OSError as error:
            raise ValueError(f"expected a free port and an address of this machine, got {options.host} port "
                             f"{options.port} ({error.strerror}); --port 0 takes a free one") from None
        url = f"http://{address}:{listener.getsockname()[1]}/"
        if running.as_json:
            print(json.dumps({"address": url}), flush=True)  # one line: the process goes on
        else:
            show(f"The explorer is at {url} (stop with Ctrl-C)", "bold green")
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, date_header=False,
                                timeout_graceful_shutdown=int(options.time_limit) + 5, backlog=BACKLOG,
                                limit_concurrency=1000)
        with suppress(KeyboardInterrupt):  # uvicorn raises it when the requests are answered
            uvicorn.Server(config).run([listener])
    return 0
