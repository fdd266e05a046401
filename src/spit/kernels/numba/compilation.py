"""How loops are compiled: on their first call, once a machine, into numba's cache on disk.

Functions that Python calls are ``compiled``; those that only other loops call are ``inlined``, without a wrapper and a
file in the cache of their own.
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


def in_cache(loop: Any) -> bool:
    """Whether numba's cache holds a compiled loop of this source, so that its first call does not compile it."""
    file = getattr(loop._cache, "_cache_file", None)  # numba has no public question for it; None: nothing is kept
    return file is not None and len(file._load_index()) > 0
