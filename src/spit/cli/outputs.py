"""What a command writes: never over its input, and with a document about each image."""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from spit.cli.console import shown
from spit.documents import read_json
from spit.files import write_together


def real_paths(paths: Iterable[Path]) -> frozenset[str]:
    """Where paths lead."""
    return frozenset(map(os.path.realpath, paths))  # unlike resolve, also of links in a circle


def write_files(contents: Mapping[Path, bytes], protected: Collection[str] = ()) -> None:
    """Write files that belong together, whole or not at all.

    Args:
        contents: bytes by path.
        protected: :func:`real_paths` that must not be overwritten.
    """
    for path in contents:
        if os.path.realpath(path) in protected:
            raise ValueError(f"{shown(path)} is an image you gave and would be overwritten; choose another --output")
    write_together(contents)


def read_about(file: Path) -> dict[str, Any]:
    """The document that an earlier run wrote there about an image and its files; one without files if there is none."""
    try:
        document = read_json(file.read_bytes())
    except (OSError, ValueError):
        document = None
    return document if isinstance(document, dict) and isinstance(document.get("files"), dict) else {"files": {}}
