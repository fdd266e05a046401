"""Threads on the CPU: how many torch and spit's kernels use, and one image on each."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@contextmanager
def cpu_threads(count: int | None) -> Iterator[None]:
    """Run a block with this many threads; None leaves the number as it is."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def map_threads(function: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    """Call a function for each item, ``torch.get_num_threads()`` at once, each on one thread of its own.

    Threads that work on items of their own need not wait for each other, as those of one operation do.
    """
    threads = torch.get_num_threads()
    with cpu_threads(1), ThreadPoolExecutor(threads) as pool:  # new threads take the number that is set
        return list(pool.map(function, items))
