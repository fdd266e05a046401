"""The worker: batches of one kind, bounds, time limits that free it, faults that hurt no other."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import pytest
from starlette.testclient import TestClient

from spit.interruption import may_stop
from spit.serve.batching import Batcher, OutOfTimeError
from spit.serve.errors import ApiError


@pytest.fixture
def batcher() -> Iterator[Batcher]:
    one = Batcher(limit=16, most=4)
    one.start()
    yield one
    one.stop()


def later(seconds: float = 20.0) -> float:
    return time.monotonic() + seconds


def together(*work: Coroutine[Any, Any, Any]) -> list[Any]:
    async def run() -> list[Any]:
        return await asyncio.gather(*work, return_exceptions=True)

    return asyncio.run(run())


class Recorder:
    """Work that keeps the batches it got."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def __call__(self, items: Sequence[Any]) -> list[Any]:
        self.batches.append(list(items))
        if "bad" in items:
            raise ValueError("bad")
        return [f"{item}!" for item in items]


def held(batcher: Batcher, work: Recorder, items: Sequence[tuple[Any, Any]], seconds: float = 20.0) -> list[Any]:
    """Submit items while the worker is busy with another, and let it go when all wait."""
    go = threading.Event()

    async def release() -> None:
        while batcher.waiting() < len(items):
            await asyncio.sleep(0.01)
        go.set()

    async def run() -> list[Any]:
        first = asyncio.create_task(batcher.run(lambda _: [go.wait(10)], None, later()))
        await asyncio.sleep(0)
        while batcher.waiting():
            await asyncio.sleep(0.01)
        found = await asyncio.gather(*(batcher.run(work, item, later(seconds), key) for item, key in items), release(),
                                     return_exceptions=True)
        await first
        return found[:-1]

    return asyncio.run(run())


def test_one_kind_runs_together(batcher: Batcher) -> None:
    work = Recorder()
    answers = held(batcher, work, [(0, "a"), (1, "a"), (2, "b"), (3, "a"), (4, None), (5, None), (6, "b")])
    assert answers == [f"{item}!" for item in range(7)]
    assert work.batches == [[0, 1, 3], [2, 6], [4], [5]]


def test_batches_are_bounded(batcher: Batcher) -> None:
    work = Recorder()
    held(batcher, work, [(item, "a") for item in range(10)])
    assert [len(batch) for batch in work.batches] == [4, 4, 2]


def test_a_bad_one_hurts_no_other(batcher: Batcher) -> None:
    work = Recorder()
    answers = held(batcher, work, [(0, "a"), (1, "a"), ("bad", "a"), (3, "a")])
    assert [answers[index] for index in (0, 1, 3)] == ["0!", "1!", "3!"]
    assert isinstance(answers[2], ValueError)


def test_too_many_requests() -> None:
    batcher = Batcher(limit=2, most=1)
    with batcher, batcher, pytest.raises(ApiError) as refused, batcher:
        pass
    assert refused.value.status == 503
    assert int(refused.value.headers["Retry-After"]) >= 1
    with batcher:
        assert batcher.taken == 1


def test_time_limit_frees_the_worker(batcher: Batcher) -> None:
    stopped = []

    def endless(items: Sequence[Any]) -> list[Any]:
        try:
            while True:
                may_stop()
                time.sleep(0.01)
        except OutOfTimeError:
            stopped.append(time.monotonic())
            raise

    async def run() -> tuple[Any, Any]:
        first = asyncio.create_task(batcher.run(endless, 0, later(0.3)))
        second = asyncio.create_task(batcher.run(lambda items: ["done"], 0, later(10)))
        return (await asyncio.gather(first, return_exceptions=True))[0], await second

    started = time.monotonic()
    refused, answer = asyncio.run(run())
    assert isinstance(refused, ApiError)
    assert refused.code == "time_limit"
    assert answer == "done"
    assert stopped[0] - started < 2


def test_what_nobody_waits_for_does_not_run(batcher: Batcher) -> None:
    ran, go = [], threading.Event()

    def slow(items: Sequence[Any]) -> list[Any]:
        go.wait(10)
        return list(items)

    async def run() -> list[Any]:
        slow_one = asyncio.create_task(batcher.run(slow, 0, later()))
        await asyncio.sleep(0.05)
        late = asyncio.create_task(batcher.run(lambda items: ran.append(1) or [0], 0, later(0.1)))
        refused = await asyncio.gather(late, return_exceptions=True)
        go.set()
        await slow_one
        return refused

    [refused] = asyncio.run(run())
    assert isinstance(refused, ApiError)
    batcher.stop()
    assert not ran


def test_stopping_finishes_what_was_taken() -> None:
    batcher, work = Batcher(limit=16, most=4), Recorder()
    batcher.start()

    answers = together(*(batcher.run(work, item, later(), None) for item in range(5)),
                       asyncio.to_thread(batcher.stop))[:-1]
    assert answers == [f"{item}!" for item in range(5)]
    [refused] = together(batcher.run(work, 0, later()))
    assert isinstance(refused, ApiError)


def test_a_long_answer_is_stopped_in_the_model(serve: Callable[..., TestClient], encoded: str) -> None:
    client = serve(time_limit=1.5)
    started = time.monotonic()
    slow = client.post("/v1/explain", json={"image": encoded, "method": "token_rise", "samples": 1024,
                                            "tokenizer": "superpixel"})
    assert slow.status_code in (200, 504)
    quick = client.post("/v1/tokenize", json={"image": encoded})
    assert quick.status_code == 200
    assert time.monotonic() - started < 5


def test_a_full_queue(serve: Callable[..., TestClient], encoded: str) -> None:
    client = serve(queue=1)
    service = client.app.state.service  # type: ignore[attr-defined]
    with service.batcher:  # somebody else's
        refused = client.post("/v1/classify", json={"image": encoded})
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "busy"
        assert int(refused.headers["retry-after"]) >= 1
        assert client.get("/health").status_code == 200
    assert client.post("/v1/classify", json={"image": encoded}).status_code == 200
    assert service.batcher.taken == 0
