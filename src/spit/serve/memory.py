"""Freed memory goes back to the system: glibc keeps it for the process, hundreds of MB after an explanation."""

import ctypes
from collections.abc import Callable
from functools import cache


def release() -> None:
    """Give memory that was freed back to the system, about 0.1 s; does nothing where the C library cannot."""
    if (trim := _malloc_trim()) is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # musl, macOS; Windows has no library of this name
        return None
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    return found
