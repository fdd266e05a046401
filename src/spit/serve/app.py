"""create_app: the service as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from starlette.staticfiles import StaticFiles

from spit import __version__
from spit.serve.api import api_routes, status_routes
from spit.serve.documents import describe
from spit.serve.errors import add_handlers
from spit.serve.explorer import explorer_routes
from spit.serve.gate import Gate
from spit.serve.models import Models
from spit.serve.options import ServeOptions
from spit.serve.service import Service

PAGE = Path(__file__).parent / "page"


def create_app(options: ServeOptions, models: Models) -> FastAPI:
    """The service and the explorer's page.

    Args:
        options: limits, and where it listens, which decides whether it needs a token.
        models: that requests may name.
    """
    service = Service(options, models)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPI(title="spit", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
                  openapi_url="/openapi.json", redirect_slashes=False)
    app.state.service = service
    add_handlers(app)
    describe(app, options)
    app.include_router(api_routes(service))
    app.include_router(status_routes(service), prefix="/v1")
    app.include_router(status_routes(service), include_in_schema=False)
    app.include_router(explorer_routes(service))

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    app.add_middleware(Gate, options=options, metrics=service.metrics)
    return app
