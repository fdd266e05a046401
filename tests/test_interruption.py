"""Work asks between its parts whether to go on; what the check raises ends it there."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
import torch

import spit
from spit.forward_pass import each_alone
from spit.interruption import may_stop, on_signals, stoppable

IMAGES = torch.randint(0, 256, (3, 3, 48, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


class EnoughError(Exception):
    pass


class Patience:
    """A check that allows some parts and then ends the work."""

    def __init__(self, parts: int | None = None) -> None:
        self.parts, self.asked = parts, 0

    def __call__(self) -> None:
        self.asked += 1
        if self.asked == self.parts:
            raise EnoughError


@pytest.fixture(scope="module")
def prediction() -> spit.Prediction:
    return spit.load("spit_tiny_16", device="cpu")(IMAGES, crop=False)


def test_nobody_asks_outside_a_block() -> None:
    check = Patience(1)
    with suppress(EnoughError), stoppable(check):
        may_stop()
    may_stop()
    assert check.asked == 1


@pytest.mark.parametrize("work", [
    lambda prediction: spit.SuperpixelTokenizer()([image[:, : 40 + n] for n, image in enumerate(IMAGES)]),
    lambda prediction: prediction.predictor(IMAGES, crop=False).logits,
    lambda prediction: prediction.segment(),
    lambda prediction: each_alone(lambda index: index, range(3)),
], ids=["tokenizing", "passes", "cleaning", "images"])
def test_work_ends_at_any_of_its_parts(prediction: spit.Prediction, work: Callable[[spit.Prediction], object]) -> None:
    whole = Patience()
    with stoppable(whole):
        work(prediction)
    assert whole.asked >= 3
    for part in (1, whole.asked // 2, whole.asked):
        check = Patience(part)
        with pytest.raises(EnoughError), stoppable(check):
            work(prediction)
        assert check.asked >= part


def test_handlers_that_a_library_replaces_are_set_again() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    with on_signals(before, signal.SIGUSR1):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGUSR1) is before


def test_signals_are_handled_in_a_block_of_the_main_thread() -> None:
    seen: list[int] = []
    before = signal.getsignal(signal.SIGUSR1)

    def handled() -> object:
        with on_signals(lambda number, _: seen.append(number), signal.SIGUSR1):
            return signal.getsignal(signal.SIGUSR1)

    assert handled() is not before
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(handled).result() is before
    with on_signals(lambda number, _: seen.append(number), signal.SIGUSR1):
        os.kill(os.getpid(), signal.SIGUSR1)
    assert seen == [signal.SIGUSR1]
    assert signal.getsignal(signal.SIGUSR1) is before
