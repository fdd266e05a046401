"""JSON and TOML from outside: a text that cannot be read is a ValueError, however it is damaged."""

import json
import tomllib
from collections.abc import Callable
from typing import Any


def read_json(text: str | bytes) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    return _read(json.loads, text)


def read_toml(text: str) -> dict[str, Any]:
    """What a TOML text says.

    Raises:
        ValueError: it is no TOML, or nested too deeply.
    """
    document: dict[str, Any] = _read(tomllib.loads, text)
    return document


def reason(error: Exception) -> str:
    """An error in words, as a part of a message."""
    if isinstance(error, KeyError):
        return f"the key {error} is missing"
    return (isinstance(error, OSError) and error.strerror) or str(error)


def expect_object(value: Any, what: str) -> dict[str, Any]:
    """A value of JSON that should be an object; TypeError if it is none."""
    if not isinstance(value, dict):
        raise TypeError(f"expected {what} as an object, got {type(value).__name__}")
    return value


def _read(parse: Callable[[Any], Any], text: str | bytes) -> Any:
    try:
        return parse(text)
    except RecursionError:  # a thousand brackets; no document of ours has ten
        raise ValueError("expected lists and tables at most a few levels deep, got more than can be read") from None
