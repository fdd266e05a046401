"""What every request passes: host, origin, token, size and time; and what every answer carries."""

import asyncio
import hmac
import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spit.serve.errors import ApiError, log
from spit.serve.metrics import Metrics
from spit.serve.options import ServeOptions

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; worker-src 'self'; object-src 'none'; "
                               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
OPEN = {"/", "/openapi.json", "/health", "/ready", "/v1/health", "/v1/ready", "/explorer/about"}
DRAINED = 4  # times the largest request that is read and thrown away, so that a browser sees the error
PATIENCE = 5.0  # seconds for that


class Gate:
    """ASGI middleware around the whole service."""

    def __init__(self, app: ASGIApp, options: ServeOptions, metrics: Metrics) -> None:
        self.app, self.options, self.metrics = app, options, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.monotonic()
        body = _Body(receive, self.options.max_bytes, started + self.options.time_limit)
        scope.setdefault("state", {})["deadline"] = body.deadline
        sent = {"status": 0}

        async def send_checked(message: Message) -> None:
            if message["type"] == "http.response.start":
                await body.drain()
                sent["status"] = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            self._check(scope, body)
            await self.app(scope, body.receive, send_checked)
        except ApiError as error:
            await error.response()(scope, receive, send_checked)
        except Exception:
            log.exception("%s failed", scope["path"])
            if sent["status"]:
                raise
            await ApiError("internal_error", "The service made an error; its log says more.").response()(
                scope, receive, send_checked)
        finally:
            self.metrics.observe_request(scope, sent["status"], time.monotonic() - started)

    def _check(self, scope: Scope, body: "_Body") -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.options.local and self.options.token is None and _name(host) not in (
                "localhost", "127.0.0.1", "::1", self.options.host, ""):
            raise ApiError("forbidden", "The service answers to localhost only.")  # or a site could rebind its name
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise ApiError("forbidden", "The service does not answer to other sites.")
        path = scope["path"]
        if self.options.token is not None and path not in OPEN and not path.startswith("/page/"):
            kind, _, given = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.options.token.encode()):
                raise ApiError("unauthorized", "Expected the header Authorization: Bearer with the service's token.",
                               {"WWW-Authenticate": "Bearer"})
        length = headers.get("content-length", "")
        body.refuse(int(length) if length.isdecimal() else 0)


class _Body:
    """The body of a request, counted as it arrives."""

    def __init__(self, receive: Receive, most: int, deadline: float) -> None:
        self._receive, self._most, self.deadline = receive, most, deadline
        self._seen = 0
        self._complete = False
        self._size = 0  # as announced

    def refuse(self, size: int) -> None:
        """Refuse a body that is too large, or is announced as such."""
        self._size = size
        if size > self._most:
            raise ApiError("image_too_large", f"The request has more than {self._most:,} bytes.")

    async def receive(self) -> Message:
        """The next message for the application."""
        if self._complete:
            return await self._receive()  # waits until the client leaves
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self.deadline - time.monotonic()))
        except TimeoutError:
            raise ApiError("upload_timeout", "The body did not arrive within the service's time limit.") from None
        self._count(message)
        self.refuse(max(self._size, self._seen))
        return dict(message)

    def _count(self, message: Any) -> None:
        self._seen += len(message.get("body", b""))
        self._complete = message["type"] != "http.request" or not message.get("more_body", False)

    async def drain(self) -> None:
        """Read what is left, within bounds: an answer on a closed connection would be lost."""
        if self._complete or self._size > DRAINED * self._most:
            return
        try:
            async with asyncio.timeout(PATIENCE):
                while not self._complete and self._seen <= DRAINED * self._most:
                    self._count(await self._receive())
        except TimeoutError:
            pass


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()
