"""Files written whole or not at all."""

import os
import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from spit.cli.console import shown
from spit.documents import read_json


def real_paths(paths: Iterable[Path]) -> frozenset[str]:
    """Where paths lead."""
    return frozenset(map(os.path.realpath, paths))  # unlike resolve, also of links in a circle


def write_files(contents: Mapping[Path, bytes], protected: Collection[str] = ()) -> None:
    """Write files that belong together: all under temporary names first, then each to its own name; safe in threads.

    If the disk is full or a folder cannot be written, no temporary or half-written file is left.

    Args:
        contents: bytes by path.
        protected: :func:`real_paths` that must not be overwritten.
    """
    for path in contents:
        if os.path.realpath(path) in protected:
            raise ValueError(f"{shown(path)} is an image you gave and would be overwritten; choose another --output")
    temporaries: dict[Path, Path] = {}
    try:
        for index, (path, data) in enumerate(contents.items()):
            temporary = path.with_name(f".spit-{os.getpid()}-{threading.get_ident()}-{index}")
            temporaries[path] = temporary
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_bytes(data)
            except OSError as error:  # which does not always name a file, or names the temporary one
                raise OSError(error.errno, error.strerror, str(path)) from error
        for path, temporary in temporaries.items():
            os.replace(temporary, path)
    finally:
        for temporary in temporaries.values():
            with suppress(OSError):
                temporary.unlink()


def read_about(file: Path) -> dict[str, Any]:
    """The document that an earlier run wrote there about an image and its files; one without files if there is none."""
    try:
        document = read_json(file.read_bytes())
    except (OSError, ValueError):
        document = None
    return document if isinstance(document, dict) and isinstance(document.get("files"), dict) else {"files": {}}
