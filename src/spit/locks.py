"""Locks between processes: the operating system releases them when a process ends, also by ``kill -9``."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: no locks, so that two processes may do the same work
    fcntl = None  # type: ignore[assignment]

TRIES = 100  # to make a folder that others may remove


@contextmanager
def locked(path: Path, wait: bool) -> Iterator[bool]:
    """Whether this process holds the lock on a file, which is there only while somebody does.

    Folders that were made for the file are removed with it if they are still empty. On a file system without locks the
    answer is yes.

    Args:
        wait: until another process releases the lock; otherwise the answer is then no.
    """
    made = [folder for folder in path.parents if not folder.exists()]  # the deepest first
    descriptor, mine = None, True
    try:
        try:
            descriptor = _acquire(path, wait)
        except BlockingIOError:
            mine = False
        yield mine
    finally:
        if mine and fcntl is not None:
            _release(path, descriptor, made)


def _acquire(path: Path, wait: bool) -> int | None:
    """A descriptor of the file that is locked, if the file system has locks; None if there is no file.

    Raises:
        BlockingIOError: another process holds the lock.
    """
    for _ in range(TRIES if fcntl is not None else 0):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # another process removed the empty folder
            continue
        except OSError:  # which writing will report
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                return descriptor
        except FileNotFoundError:  # the holder before removed this file
            pass
        except BlockingIOError:
            os.close(descriptor)
            raise
        except OSError:  # a file system without locks
            return descriptor
        except BaseException:  # a signal
            os.close(descriptor)
            raise
        os.close(descriptor)
    return None


def _release(path: Path, descriptor: int | None, made: Sequence[Path]) -> None:
    """Remove the file and the empty folders; without a descriptor, if a signal came between the file and its lock."""
    with suppress(OSError):
        if descriptor is None:
            descriptor = os.open(path, os.O_RDWR)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody holds it
        path.unlink()
    for folder in made:
        with suppress(OSError):  # if something was written
            folder.rmdir()
    if descriptor is not None:
        os.close(descriptor)
