"""One thread per image: numba kernels release the GIL and share nothing between images."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy.typing as npt
import torch

Array = npt.NDArray[Any]


def for_each_image(function: Callable[[int], None], count: int) -> None:
    """Call ``function(b)`` for every b below ``count``, on ``torch.get_num_threads()`` threads.

    Returns when all calls have returned, and raises the first error. A loader's worker process, where torch
    has one thread, makes the calls in turn. Calls must not nest.
    """
    threads = min(torch.get_num_threads(), count)
    if threads <= 1:
        for index in range(count):
            function(index)
        return
    for _ in _pool(torch.get_num_threads(), os.getpid()).map(function, range(count)):
        pass


@lru_cache(maxsize=2)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    # Per process: a forked child inherits the pool but not its threads, and would wait forever.
    return ThreadPoolExecutor(threads, thread_name_prefix=f"spit-{process}")
