"""Threads for images and for parts of one: compiled loops release the GIL and share nothing between images."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from spit.kernels.concurrency import thread_count

_OF_THIS_THREAD = threading.local()


def threads_left() -> int:
    """:func:`thread_count`, or what a loop over images leaves to each of them."""
    return getattr(_OF_THIS_THREAD, "threads", None) or thread_count()


def take_one() -> None:
    """Let kernels that this thread calls run on it alone; for the threads of a pool."""
    _OF_THIS_THREAD.threads = 1


def for_each_image(kernel: Callable[..., Any], *images: Iterable[Any]) -> list[Any]:
    """Call a kernel for every image, on :func:`threads_left` threads, and collect what it returns.

    The calling thread is one of them; the others end with the call. Raises an error of any image. A loader's worker
    process, where torch has one thread, makes the calls in turn. Loops in the kernel share the threads that are left.

    Args:
        images: the kernel's arguments, an array or a list each with an entry for each image.
    """
    calls = list(zip(*images, strict=True))
    total = threads_left()
    threads = min(total, len(calls))
    if threads <= 1:
        return [kernel(*call) for call in calls]
    answers: list[Any] = [None] * len(calls)

    def work(first: int) -> None:  # a task for each image would cost as much as a small kernel
        before = getattr(_OF_THIS_THREAD, "threads", None)
        _OF_THIS_THREAD.threads = total // threads
        try:
            for b in range(first, len(calls), threads):
                answers[b] = kernel(*calls[b])
        finally:
            _OF_THIS_THREAD.threads = before

    with ThreadPoolExecutor(threads - 1, thread_name_prefix="spit") as pool:
        others = [pool.submit(work, first) for first in range(1, threads)]
        work(0)
    for other in others:
        other.result()
    return answers


def spans(count: int, parts: int) -> list[tuple[int, int]]:
    """``range(count)`` cut into at most so many parts of about the same length."""
    ends = [count * part // parts for part in range(parts + 1)]
    return [(first, last) for first, last in pairwise(ends) if first < last]
