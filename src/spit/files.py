"""Files written whole or not at all, by threads, processes and machines that may write the same ones."""

import os
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

TEMPORARY = ".spit-saving-"
ABANDONED = 3600  # seconds without a write after which the writer of a temporary file is taken to be dead


@contextmanager
def replacing(path: Path, synced: bool = True) -> Iterator[Path]:
    """A temporary name, which becomes ``path`` when the block ends without an error; folders are made if needed.

    Args:
        synced: the bytes are on disk before they have the name, and the name is when this returns.
    """
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield temporary
        if synced:
            _sync(temporary, os.O_RDWR)
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()
    if synced and os.name == "posix":
        _sync(path.parent, os.O_RDONLY)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file and sync it to disk, atomically."""
    write_together({path: data}, synced=True)


def write_together(contents: Mapping[Path, bytes], synced: bool = False) -> None:
    """Write files that belong together: all under temporary names first, then each takes its own, in order.

    If the disk is full or a folder cannot be written, no temporary or half-written file is left.
    """
    with ExitStack() as stack:
        for path, data in reversed([*contents.items()]):  # the stack ends them the other way round
            try:
                stack.enter_context(replacing(path, synced)).write_bytes(data)
            except OSError as error:  # which does not always name a file, or names the temporary one
                raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files from a folder that writers left an hour ago or earlier, killed on the way."""
    for path in folder.glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
