"""What a command writes: whole, and never over its input."""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryFile

from spit.cli.console import shown
from spit.files import write_together


def real_paths(paths: Iterable[Path]) -> frozenset[str]:
    """Where paths lead."""
    return frozenset(map(os.path.realpath, paths))  # unlike resolve, also of links in a circle


def write_files(contents: Mapping[Path, bytes], protected: Collection[str] = ()) -> None:
    """Write files that belong together, whole or not at all.

    Args:
        contents: bytes by path.
        protected: :func:`real_paths` that must not be overwritten.

    Raises:
        OSError: the folder cannot be made or written; the message says so.
    """
    for path in contents:
        refuse_protected(path, protected)
    try:
        write_together(contents)
    except IsADirectoryError:  # where a file should be; the error names it
        raise
    except OSError as error:
        raise _unwritable(Path(error.filename).parent, error) from error


def refuse_protected(path: Path, protected: Collection[str]) -> None:
    """Refuse to overwrite an image of the user."""
    if os.path.realpath(path) in protected:
        raise ValueError(f"{shown(path)} is an image you gave and would be overwritten; choose another --output")


def check_folder(folder: Path | None) -> None:
    """Refuse, before the work, an output folder that is a file, or that cannot be made or written.

    Nothing is made: a file without a name is tried in the folder, or in the nearest one above that exists.
    """
    if folder is None:
        return
    if os.path.isfile(folder):
        raise ValueError(f"expected a folder for --output, got the file {shown(folder)}; choose another")
    try:
        with TemporaryFile(dir=next(one for one in (folder, *folder.parents) if os.path.exists(one))):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> OSError:
    return OSError(f"cannot write to the folder {shown(folder)} ({error.strerror}); choose another --output")
