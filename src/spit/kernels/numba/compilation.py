"""How loops are compiled: once a machine, into numba's cache on disk, and with as little as the calls need.

A fresh install compiles on its first calls, so the time this takes counts (``background.py`` hides most of it).
Functions that Python calls are ``compiled``; those that only other loops call are ``inlined``, without a wrapper and a
file in the cache of their own. Loops assign elements rather than slices: for ``a[:] = b`` numba compiles the text of an
error, which takes four seconds.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

# A division by zero gives ∞, NaN or 0, as in numpy; the loops divide by nothing that can be zero.
_LEAN: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = {**_LEAN, "no_cpython_wrapper": True}

inlined = njit(**_INNER)


def compiled(loop: Callable[..., Any]) -> Any:
    """Compile a loop on its first call, from the cache if it is there."""
    try:
        return njit(cache=True, **_LEAN)(loop)
    except RuntimeError:  # no folder that can be written to: each process compiles for itself
        return njit(**_LEAN)(loop)
