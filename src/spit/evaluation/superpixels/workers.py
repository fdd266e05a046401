"""Images spread over processes, one thread in each, so that a method's time is its own."""

import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing import get_context
from typing import Any

from spit.errors import SpitError
from spit.evaluation.superpixels.data import Sample
from spit.evaluation.superpixels.methods import METHODS, Photo, Regions
from spit.evaluation.superpixels.regions import count_regions
from spit.evaluation.superpixels.scores import score

Record = dict[str, Any]
Task = tuple[Sample, str, float]
Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Generator[Any]]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_warm: set[str] = set()


@contextmanager
def open_workers(count: int) -> Iterator[Spread]:
    """A ``map`` that spreads tasks over ``count`` processes and gives answers in order; 0 is this process.

    Closing its iterator early cancels what has not begun.
    """
    if count == 0:
        with _one_thread():
            yield lambda work, tasks: (work(task) for task in tasks)
        return
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # read when a child imports its libraries
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=_begin, initargs=(os.getpid(),))
    try:
        yield lambda work, tasks: (answer for answer in pool.map(work, tasks))
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def check(sample: Sample) -> int:
    """Read a sample, which refuses what is wrong with it; its pixels."""
    return sample.read()[1][0].size


def measure(task: Task) -> Record:
    """All scores of one method on one image, and the seconds that the method alone took."""
    sample, name, parameter = task
    image, truths = sample.read()
    if name not in _warm:  # the first call imports and compiles
        segment(task, image)
        _warm.add(name)
    start = time.perf_counter()
    labels = segment(task, image)
    seconds = time.perf_counter() - start
    scores = score(image, labels, truths)
    return {"image": sample.name, "parameter": parameter, "seconds": round(seconds, 6), **asdict(scores)}


def count(task: Task) -> int:
    """The 4-connected regions of one method on one image."""
    return count_regions(segment(task, task[0].read()[0]))


def segment(task: Task, image: Photo) -> Regions:
    """The labels that a method gives; where a peer fails, which one and where."""
    sample, name, parameter = task
    method = METHODS[name]
    try:
        return method.segment(image, parameter)
    except Exception as error:
        if method.ours:
            raise
        raise SpitError(f"{method.title} failed on {sample.image} with {method.parameter} {parameter:g}: {error}; "
                        "leave it out with --method") from error


def _begin(parent: int) -> None:
    """In a worker: one thread for the work, and one that ends the process with its parent, however that ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    _set_threads(1, 1)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = _set_threads(1, 1)
    try:
        yield
    finally:
        _set_threads(*before)


def _set_threads(torch_threads: int, opencv_threads: int) -> tuple[int, int]:
    """Set both, and tell what they were."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(torch_threads)
    try:
        import cv2
    except ImportError:
        return before, opencv_threads
    before_opencv = cv2.getNumThreads()
    cv2.setNumThreads(opencv_threads)
    return before, before_opencv
