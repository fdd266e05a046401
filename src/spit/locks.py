"""Locks between processes: the operating system releases them when a process ends, also by ``kill -9``."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: no locks, so that two processes may do the same work
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Yield whether this process holds the lock on a file, which is there only while somebody does.

    True where there are no locks, and where the file cannot be made, which writing will report. Folders that were made
    for the file are removed with it if they are still empty.
    """
    made = [folder for folder in path.parents if not folder.exists()]  # the deepest first
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError:
        yield True
        return
    with file:
        mine = _lock(file.fileno(), path)
        try:
            yield mine
        finally:
            if mine:
                path.unlink(missing_ok=True)
                for folder in made:
                    with suppress(OSError):  # if something was written
                        folder.rmdir()


def _lock(descriptor: int, path: Path) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(descriptor).st_ino == path.stat().st_ino  # else its holder has just removed it
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:  # a file system without locks
        return True
