"""Packages whose names are imported when they are asked for, so that their options can be read without torch."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    Args:
        names: what the package offers, by the submodule that has it.
    """
    modules = {name: module for module, group in names.items() for name in group}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return load
