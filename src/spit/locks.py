"""Locks between processes: the operating system releases them when a process ends, also by ``kill -9``."""

import os
from collections.abc import Iterator
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
    descriptor = None
    made = [folder for folder in path.parents if not folder.exists()]  # the deepest first
    tries = 0
    while fcntl is not None:
        tries += 1
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(descriptor)  # type: ignore[arg-type]
            yield False
            return
        except FileNotFoundError:  # another process removed the empty folder
            if tries == TRIES:  # or none can be made here, which writing will report
                break
            continue
        except OSError:  # a file system without locks, or a folder that writing will report
            break
        with suppress(OSError):
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                break
        os.close(descriptor)  # the holder before removed this file
        descriptor = None
    try:
        yield True
    finally:
        if descriptor is not None:
            with suppress(OSError):
                path.unlink()
                for folder in made:  # if nothing was written
                    folder.rmdir()
            os.close(descriptor)
