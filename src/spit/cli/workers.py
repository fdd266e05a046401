"""``--workers``: processes that share the images of a run."""

import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context, parent_process
from threading import Thread

from spit.cli.console import reason
from spit.cli.inputs import Document, Input
from spit.errors import SpitError
from spit.interruption import on_signals

Work = Callable[[Input, Callable[[str], None]], Document]
_state: dict[str, Work] = {}  # of a worker process


def work_apart(work: Work, items: Iterable[Input], count: int) -> Iterator[tuple[Input, Document | str]]:
    """Answer images in ``count`` processes, which share the cores, in the order in which they are done.

    Args:
        work: can be pickled.

    Yields:
        An image, and its document or the reason why there is none.

    Raises:
        SpitError: a process was killed.
    """
    threads = max(1, (os.cpu_count() or 1) // count)
    given = (pickle.dumps(work), threads)  # by value: in arguments, torch hands tensors over in shared memory
    items = iter(items)
    first = [*islice(items, count)]
    with ProcessPoolExecutor(count, get_context("spawn"), _begin, given) as pool:
        with on_signals(signal.SIG_IGN, signal.SIGINT):  # which the processes that start here inherit
            busy = {pool.submit(_answer, item): item for item in first}
        while busy:
            for future in wait(busy, return_when=FIRST_COMPLETED).done:
                try:
                    yield busy.pop(future), future.result()
                except BrokenProcessPool:
                    raise SpitError("a worker process was killed, as happens if memory is short; the same command "
                                    "continues with the remaining images, and fewer --workers need less") from None
            busy.update((pool.submit(_answer, item), item) for item in islice(items, count - len(busy)))


def _begin(work: bytes, threads: int) -> None:
    """Start of a worker process, which ends with its parent."""
    import torch

    Thread(target=_end_with_parent, daemon=True).start()
    warnings.filterwarnings("ignore", module="PIL")  # as in the parent
    torch.set_num_threads(threads)
    _state["work"] = pickle.loads(work)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _answer(item: Input) -> Document | str:
    try:
        return _state["work"](item, lambda _: None)
    except (SpitError, ValueError) as error:
        return reason(error)
