"""Images spread over processes, one thread in each, so that a method's time is its own."""

import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import torch

from comparison.data import read_sample
from comparison.methods import METHODS, Photo, Regions
from spit.errors import SpitError
from spit.evaluation.runner import Record
from spit.evaluation.samples import Sample
from spit.evaluation.superpixels import count_regions, score

Task = tuple[Sample, str, float]
Spread = Callable[[Callable[[Any], Any], Sequence[Any]], Generator[Any]]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_warm: set[str] = set()


@contextmanager
def open_workers(count: int) -> Iterator[Spread]:
    """A ``map`` over ``count`` processes with answers in order; 0 is this process.

    Closing its iterator early cancels what has not started.
    """
    if count == 0:
        before = _set_threads(1, 1)
        try:
            yield lambda work, tasks: (work(task) for task in tasks)
        finally:
            _set_threads(*before)
        return
    environment = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # read when a child imports its libraries
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=_begin, initargs=(os.getpid(),))
    try:
        yield lambda work, tasks: (answer for answer in pool.map(work, tasks))
    except BrokenProcessPool as error:
        raise SpitError("a worker process ended before its work was done, for instance by lack of memory; what was "
                        "measured is kept with --output: run the same command again, with fewer --workers") from error
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in environment.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def count_pixels(sample: Sample) -> int:
    """Read a sample, which refuses damaged files, and count its pixels."""
    return read_sample(sample)[1][0].size


def measure(task: Task) -> Record:
    """All scores of one method on one image, and the seconds that the method itself took."""
    sample, name, parameter = task
    image, truths = read_sample(sample)
    if name not in _warm:  # the first call imports and compiles
        segment(task, image)
        _warm.add(name)
    start = time.perf_counter()
    labels = segment(task, image)
    seconds = time.perf_counter() - start
    return {"parameter": parameter, "seconds": round(seconds, 6), **score(image, labels, truths)}


def count(task: Task) -> Record:
    """The 4-connected regions of one method on one image."""
    return {"parameter": task[2], "regions": count_regions(segment(task, read_sample(task[0])[0]))}


def segment(task: Task, image: Photo) -> Regions:
    """The labels that a method gives; if another package fails, the error names method and image."""
    sample, name, parameter = task
    method = METHODS[name]
    try:
        return method.segment(image, parameter)
    except Exception as error:
        if method.ours:
            raise
        raise SpitError(f"{method.title} failed on {sample.image} with {method.parameter} {parameter:g}: {error}; "
                        "leave it out with --algorithm") from error


def _begin(parent: int) -> None:
    """In a worker: one thread for the work, and one that ends the process when its parent ends."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    _set_threads(1, 1)


def _set_threads(torch_threads: int, opencv_threads: int) -> tuple[int, int]:
    """Set the threads of torch and of OpenCV; the earlier numbers."""
    before = torch.get_num_threads()
    torch.set_num_threads(torch_threads)
    try:
        import cv2
    except ImportError:
        return before, opencv_threads
    before_opencv = cv2.getNumThreads()
    cv2.setNumThreads(opencv_threads)
    return before, before_opencv
