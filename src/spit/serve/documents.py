"""The OpenAPI document: bodies as JSON or multipart, and every error."""

import base64
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from PIL import Image
from pydantic import BaseModel

from spit.drawing.pictures import encode_png
from spit.serve.errors import CODES
from spit.serve.options import ServeOptions
from spit.serve.schemas import ErrorAnswer

DESCRIPTION = """Superpixel tokens for Vision Transformers: regions, classes, explanations, masks, correspondences and
embeddings of images. Every route takes multipart/form-data or JSON with images in base64. Errors are
`{"error": {"code", "message"}}` with stable codes."""


def body(kind: type[BaseModel], images: dict[str, bool]) -> dict[str, Any]:
    """The request body of a route: its fields and images, as JSON or multipart."""
    schema = kind.model_json_schema()
    schema.pop("title", None)
    fields: dict[str, Any] = schema["properties"]
    pixels = Image.linear_gradient("L").resize((32, 32))
    picture = base64.b64encode(encode_png(pixels.convert("RGB"))).decode()
    example = {name: [picture] if several else picture for name, several in images.items()}

    def of(item: dict[str, Any], form: bool) -> dict[str, Any]:
        own = {name: _plain(field) if form else field for name, field in fields.items()}
        for name, several in images.items():
            own[name] = {"type": "array", "items": item, "minItems": 1, "maxItems": 8} if several else item
        return {**schema, "type": "object", "properties": own, "required": list(images),
                "additionalProperties": False}

    text = {"type": "string", "format": "byte", "description": "An image file in base64", "minLength": 1}
    file = {"type": "string", "format": "binary", "description": "An image file"}
    return {"requestBody": {"required": True, "content": {
        "multipart/form-data": {"schema": of(file, True), "encoding": {
            name: {"contentType": "image/png, image/jpeg, image/webp, application/octet-stream"} for name in images}},
        "application/json": {"schema": of(text, False), "example": example}}}}


def errors(*codes: str) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, by status."""
    found: dict[int | str, dict[str, Any]] = {}
    for code in codes:
        status, meaning = CODES[code]
        entry = found.setdefault(status, {"model": ErrorAnswer, "description": "", "content": {
            "application/json": {"examples": {}}}})
        entry["description"] = f"{entry['description']} {meaning}".strip()
        entry["content"]["application/json"]["examples"][code] = {
            "value": {"error": {"code": code, "message": meaning}}}
        if status == 503:
            entry["headers"] = {"Retry-After": {"description": "Seconds", "schema": {"type": "integer"}}}
    return found


def describe(app: FastAPI, options: ServeOptions) -> None:
    """Let the application answer /openapi.json with this document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title="spit", version=app.version, description=DESCRIPTION, routes=app.routes,
                               license_info={"name": "Apache-2.0"})
            if options.token is not None:
                made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                made["security"] = [{"token": []}]
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _plain(field: dict[str, Any]) -> dict[str, Any]:
    """A field of a form: there is no null, an empty or absent one takes its place."""
    kinds = [kind for kind in field.get("anyOf", []) if kind.get("type") != "null"]
    if not kinds:
        return field
    rest = {key: value for key, value in field.items() if key not in ("anyOf", "default")}
    return {**rest, **kinds[0]} if len(kinds) == 1 else {**rest, "anyOf": kinds}
