"""Errors as JSON: ``{"error": {"code": "image_too_large", "message": "one sentence"}}``."""

import logging
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

log = logging.getLogger("spit.serve")

CODES: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The body is not what its content type says, or cannot be read."),
    "unauthorized": (401, "The token is missing or wrong."),
    "forbidden": (403, "The request comes from another site, or was sent to another host name."),
    "not_found": (404, "There is no such route, picture, sample or job; pictures are kept for a while only."),
    "method_not_allowed": (405, "The route exists, but not with this method."),
    "upload_timeout": (408, "The body did not arrive within the time limit."),
    "image_too_large": (413, "The request has too many bytes, or the image too many pixels."),
    "unsupported_media_type": (415, "The body is neither JSON nor multipart/form-data."),
    "invalid_image": (422, "The file is no image, or a damaged one."),
    "invalid_request": (422, "A field is missing, unknown, or has a value outside its range."),
    "method_unavailable": (422, "The model or the installation lacks what the method needs."),
    "internal_error": (500, "A fault of the service."),
    "busy": (503, "The queue is full; Retry-After says when to try again."),
    "time_limit": (504, "The answer took longer than the time limit."),
}
STATUS_CODES = {status: code for code, (status, _) in reversed(CODES.items())}


class ApiError(Exception):
    """An answer other than 200: a stable code and one sentence.

    Args:
        code: one of :data:`CODES`, which says the status.
        message: one sentence that names no path of the server.
        headers: to send with it.
    """

    def __init__(self, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.headers = code, message, dict(headers or {})
        self.status = CODES[code][0]

    def response(self) -> JSONResponse:
        """The error as an answer."""
        return JSONResponse({"error": {"code": self.code, "message": self.message}}, self.status, self.headers)


def describe(error: ValidationError | RequestValidationError) -> str:
    """The first fault that pydantic found, in one sentence."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    message = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    return f"{place}: {message}." if place else f"{message}."


def add_handlers(app: FastAPI) -> None:
    """Answer every error as JSON."""

    def api_error(request: Request, error: ApiError) -> JSONResponse:
        return error.response()

    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return ApiError("invalid_request", describe(error)).response()

    def http(request: Request, error: HTTPException) -> JSONResponse:
        code = STATUS_CODES.get(error.status_code, "bad_request" if error.status_code < 500 else "internal_error")
        answer = ApiError(code, CODES[code][1], error.headers)
        answer.status = error.status_code
        return answer.response()

    app.add_exception_handler(ApiError, api_error)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, invalid)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, http)  # type: ignore[arg-type]
