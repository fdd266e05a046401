"""Requests with images: multipart or JSON, checked for size and pixels before anything is decoded."""

import base64
import binascii
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request
from PIL import Image
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from torch import Tensor

from spit.data.images import FORMATS, load_image
from spit.errors import ImageError
from spit.predictor import at_most
from spit.serve.errors import ApiError, describe

MOST_FIELDS = 32
FIELD_BYTES = 64 * 1024
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Upload:
    """The bytes of an image whose header was read: of a known format, with few enough pixels."""

    data: bytes = field(repr=False)
    width: int
    height: int

    @staticmethod
    def of(data: bytes, max_pixels: int) -> "Upload":
        """Read the header; ApiError if it is no image, or one of too many pixels."""
        try:
            with Image.open(io.BytesIO(data), formats=tuple(FORMATS)) as image:
                width, height = image.size
        except Image.DecompressionBombError:
            raise _too_many(max_pixels) from None
        except Exception:  # on damaged headers Pillow raises many kinds of errors
            raise ApiError("invalid_image", f"Expected an image ({', '.join(FORMATS)}), got "
                           + ("something else, or a damaged header." if data else "no bytes.")) from None
        if width * height > max_pixels:
            raise _too_many(max_pixels)
        return Upload(data, width, height)

    def decode(self, max_pixels: int, side: int | None = None) -> Tensor:
        """The image, ``(3, H, W)`` uint8, its longer side at most ``side``; ApiError if it is damaged."""
        try:
            image = load_image(self.data, max_pixels)
            return image if side is None else at_most(image, side)
        except ImageError as error:
            message = str(error).removeprefix("image bytes: ").rstrip(".")
            raise ApiError("invalid_image", f"{message[:1].upper()}{message[1:]}.") from None


class _InMemory(MultiPartParser):
    """The parser without files on disk: requests are bounded, and the file system may be read-only."""

    spool_max_size = 2**40


async def read(request: Request, kind: type[Model], images: Mapping[str, bool]) -> tuple[Model, dict[str, list[bytes]]]:
    """The fields and the images of a request.

    Args:
        kind: of the fields, images left out.
        images: the names of the fields with images, and whether each may have several.
    """
    values, files = await _read_any(request, images)
    for name, several in images.items():
        if not files.get(name):
            raise ApiError("invalid_request", f"{name}: expected an image, got none.")
        if len(files[name]) > 1 and not several:
            raise ApiError("invalid_request", f"{name}: expected one image, got {len(files[name])}.")
    return validate(kind, values), files


def validate(kind: type[Model], values: Mapping[str, Any]) -> Model:
    """Fields as their model; ApiError if one is wrong."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ApiError("invalid_request", describe(error)) from None


async def _read_any(request: Request, images: Mapping[str, bool]) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        values = await read_json(request)
        return values, {name: _from_base64(name, values.pop(name, None)) for name in images}
    if kind == "multipart/form-data":
        return await _read_form(request, images)
    raise ApiError("unsupported_media_type", "Expected a body of application/json or multipart/form-data.")


async def read_json(request: Request) -> dict[str, Any]:
    """The object in a JSON body."""
    try:
        values = json.loads(await request.body(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ApiError("bad_request", "The body is not JSON.") from None
    if not isinstance(values, dict):
        raise ApiError("bad_request", "Expected a JSON object as the body.")
    return values


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _from_base64(name: str, value: Any) -> list[bytes]:
    given = value if isinstance(value, list) else [] if value is None else [value]
    found = []
    for one in given:
        if not isinstance(one, str):
            raise ApiError("invalid_request", f"{name}: expected base64 as a string.")
        text = one.partition(",")[2] if one.startswith("data:") else one
        try:
            found.append(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError):
            raise ApiError("invalid_request", f"{name}: expected base64, got something else.") from None
    return found


async def _read_form(request: Request, images: Mapping[str, bool]) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
    try:
        form = await _InMemory(request.headers, request.stream(), max_files=MOST_FIELDS, max_fields=MOST_FIELDS,
                               max_part_size=FIELD_BYTES).parse()
    except (MultiPartException, ValueError, KeyError, LookupError):
        raise ApiError("bad_request", "The body is not multipart/form-data, or has too many or too long fields."
                       ) from None
    values: dict[str, Any] = {}
    files: dict[str, list[bytes]] = {name: [] for name in images}
    try:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                if name not in images:
                    raise ApiError("invalid_request", f"{name[:40]!r}: expected no file in this field.")
                kind = (value.content_type or "application/octet-stream").partition(";")[0].strip().lower()
                if not kind.startswith("image/") and kind != "application/octet-stream":
                    raise ApiError("unsupported_media_type", f"{name}: expected a file of type image/*.")
                files[name].append(await value.read())
            elif name in images:
                raise ApiError("invalid_request", f"{name}: expected a file, got text.")
            elif name in values:
                raise ApiError("invalid_request", f"{name[:40]!r}: expected the field once.")
            elif value != "":  # an empty field of a form is one that was left out
                values[name] = value
    finally:
        await form.close()
    return values, files


def _too_many(max_pixels: int) -> ApiError:
    return ApiError("image_too_large", f"The image has more than {max_pixels:,} pixels.")
