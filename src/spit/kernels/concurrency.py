"""How many threads the CPU's kernels run on."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_threads: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Run the CPU's kernels in this block on so many threads, an image each; None leaves the number as it is.

    It never changes an answer.
    """
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise ValueError(f"expected threads as a whole number of 1 or more, got {count!r}")
    token = _threads.set(_threads.get() if count is None else count)
    try:
        yield
    finally:
        _threads.reset(token)


def thread_count() -> int:
    """The threads of the block; else torch's own number; without torch, ``OMP_NUM_THREADS`` or the number of cores."""
    if (count := _threads.get()) is not None:
        return count
    if (torch := sys.modules.get("torch")) is not None:
        return int(torch.get_num_threads())
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return int(given) if given.isdecimal() and int(given) > 0 else os.cpu_count() or 1


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Run torch's operations in this block on so many threads; None leaves the number as it is.

    With one they do not wait for each other at every operation while another process takes their cores.
    """
    import torch  # not at the top: arrays need no torch

    before = torch.get_num_threads()
    if count not in (None, before):
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if count not in (None, before):
            torch.set_num_threads(before)
