"""One worker for all users: jobs of one kind and size run together, and a job whose time is up frees the worker."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Any

from spit.interruption import may_stop, stoppable
from spit.serve.errors import ApiError, log

Work = Callable[[Sequence[Any]], Sequence[Any]]


class OutOfTimeError(Exception):
    """Nobody waits for the answer any more."""


@dataclass(eq=False)
class Job:
    """An item to work on, and who waits for the answer.

    Attributes:
        key: jobs with equal keys may run together; None for a job that runs alone.
        work: takes the items of some jobs and returns an answer for each.
        deadline: by :func:`time.monotonic`.
    """

    key: Hashable
    work: Work
    item: Any
    deadline: float
    future: "Future[Any]" = field(default_factory=Future)
    abandoned: bool = False


class Batcher:
    """A thread that works on jobs, and a bounded number of requests in all.

    Args:
        limit: requests taken at a time, those that still send their image among them.
        most: jobs in a batch.
        observe: called after each batch with its number of jobs and its seconds.
    """

    def __init__(self, limit: int, most: int,
                 observe: Callable[[int, float], None] = lambda jobs, seconds: None) -> None:
        self.limit, self.most, self.taken = limit, most, 0
        self._observe = observe
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._ending = False
        self._pace = 0.1  # seconds a job has taken lately
        self._thread = threading.Thread(target=self._loop, name="spit-worker", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what was taken, then end the thread."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join()

    def waiting(self) -> int:
        """Jobs that wait for the worker."""
        return len(self._jobs)

    def __enter__(self) -> None:
        """Take a request; :class:`~spit.serve.errors.ApiError` if there are too many. Of the event loop alone."""
        if self.taken >= self.limit:
            seconds = max(1, round(self._pace * self.taken))
            raise ApiError("busy", f"The service has {self.taken} requests to answer; try again in {seconds} s.",
                           {"Retry-After": str(seconds)})
        self.taken += 1

    def __exit__(self, *exception: object) -> None:
        self.taken -= 1

    async def run(self, work: Work, item: Any, deadline: float, key: Hashable = None) -> Any:
        """The answer of ``work`` for an item; ApiError if it does not come by the deadline."""
        job = Job(key, work, item, deadline)
        with self._changed:
            if self._ending:
                raise ApiError("busy", "The service is shutting down.", {"Retry-After": "5"})
            self._jobs.append(job)
            self._changed.notify()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.future), max(0.0, deadline - time.monotonic()))
        except (TimeoutError, OutOfTimeError):
            raise ApiError("time_limit", "The answer took longer than the service's time limit.") from None
        finally:
            job.abandoned = True

    def _loop(self) -> None:
        while batch := self._take():
            started = time.monotonic()
            self._work(batch)
            seconds = time.monotonic() - started
            self._pace += 0.2 * (seconds / len(batch) - self._pace)
            self._observe(len(batch), seconds)

    def _take(self) -> list[Job]:
        """The oldest job and others of its kind; nothing at the end."""
        with self._changed:
            while True:
                while self._jobs and not self._jobs[0].future.set_running_or_notify_cancel():
                    self._jobs.popleft()  # nobody waits for it
                if self._jobs:
                    break
                if self._ending:
                    return []
                self._changed.wait()
            first = self._jobs.popleft()
            batch, rest = [first], deque[Job]()
            for job in self._jobs:
                alike = first.key is not None and job.key == first.key and len(batch) < self.most
                if not alike:
                    rest.append(job)
                elif job.future.set_running_or_notify_cancel():
                    batch.append(job)
            self._jobs = rest
            return batch

    def _work(self, batch: Sequence[Job]) -> None:
        def check() -> None:
            if all(job.abandoned or time.monotonic() > job.deadline for job in batch):
                raise OutOfTimeError

        try:
            with stoppable(check):
                may_stop()
                answers = batch[0].work([job.item for job in batch])
        except BaseException as error:
            if len(batch) > 1 and not isinstance(error, OutOfTimeError):
                for job in batch:  # one of them hurts no other
                    self._work([job])
                return
            if not isinstance(error, OutOfTimeError | ApiError | CancelledError):
                log.exception("a job failed")
            for job in batch:
                job.future.set_exception(error)
            return
        for job, answer in zip(batch, answers, strict=True):
            job.future.set_result(answer)
