"""One thread per image: numba kernels release the GIL and share nothing between images."""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

from torch import Tensor

from spit.kernels.concurrency import thread_count


def for_each_image(kernel: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Call a kernel for every image, on :func:`thread_count` threads, and collect what it returns.

    The calling thread is one of them. Raises an error of any image. A loader's worker process, where torch has one
    thread, makes the calls in turn. Calls must not nest.

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

    threads = min(thread_count(), count)
    if threads <= 1:
        return [call(b) for b in range(count)]
    answers: list[Any] = [None] * count
    waiting = deque(range(count))

    def work() -> None:
        """Take images until none are left. A task for each would cost as much as a small kernel."""
        while waiting:
            try:
                b = waiting.popleft()
            except IndexError:  # another thread took it
                return
            try:
                answers[b] = call(b)
            except BaseException:
                waiting.clear()
                raise

    others = [_pool(threads, os.getpid()).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        wait(others)
    for other in others:
        other.result()
    return answers


@lru_cache(maxsize=2)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    # Per process: a forked child inherits the pool but not its threads, and would wait forever.
    return ThreadPoolExecutor(threads, thread_name_prefix=f"spit-{process}")
