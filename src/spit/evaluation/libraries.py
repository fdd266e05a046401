"""Optional packages, imported when they are needed."""

from importlib import import_module
from typing import Any

from spit.errors import MissingExtra

EXTRAS = {"scipy": ("scipy", "evaluate"), "skimage": ("scikit-image", "evaluate")}


def library(module: str, purpose: str) -> Any:
    """A module of an optional package.

    Raises:
        MissingExtra: it is not installed; the message says what for and which extra has it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(*EXTRAS[module.partition(".")[0]], purpose) from error
