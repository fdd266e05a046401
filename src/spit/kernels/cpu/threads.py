"""One thread per image: numba kernels release the GIL and share nothing between images."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy.typing as npt
from torch import Tensor

from spit.kernels.threads import thread_count

Array = npt.NDArray[Any]


def for_each_image(kernel: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Call a kernel for every image, on :func:`thread_count` threads, and collect what it returns.

    Raises the first error. A loader's worker process, where torch has one thread, makes the calls in turn.
    Calls must not nest.

    Args:
        arguments: of the kernel. A tensor ``(B, ...)`` or a tuple of B tensors is passed image by image, as an array;
            the kernel may write to contiguous ones. Anything else is passed to every call.
    """
    parts = [argument.detach().contiguous().numpy() if isinstance(argument, Tensor)
             else [part.numpy() for part in argument] if isinstance(argument, tuple) else None
             for argument in arguments]
    count = next(len(part) for part in parts if part is not None)

    def call(b: int) -> Any:
        return kernel(*(argument if part is None else part[b]
                        for argument, part in zip(arguments, parts, strict=True)))

    threads = thread_count()
    if min(threads, count) <= 1:
        return [call(b) for b in range(count)]
    return list(_pool(threads, os.getpid()).map(call, range(count)))


@lru_cache(maxsize=2)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    # Per process: a forked child inherits the pool but not its threads, and would wait forever.
    return ThreadPoolExecutor(threads, thread_name_prefix=f"spit-{process}")
