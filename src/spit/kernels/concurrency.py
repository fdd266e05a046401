"""How many threads the CPU's kernels run on."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def thread_count() -> int:
    """torch's number of threads; without torch, ``OMP_NUM_THREADS`` or the number of cores. It changes no answer."""
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
