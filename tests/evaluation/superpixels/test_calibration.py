from collections.abc import Callable
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spit.evaluation.superpixels import Method
from spit.evaluation.superpixels.calibration import CLOSE, MIXABLE, TRIES, calibrate


def method(slope: float, whole: bool = False) -> Method:
    """One whose guess is always 10."""
    return Method("m", "m", "p", slope, lambda *_: 10.0, lambda image, _: np.zeros(image.shape[:2], int), whole, "p")


def counting(count: Callable[[float], float]) -> tuple[Callable[[float], float], list[float]]:
    calls: list[float] = []

    def mean_count(parameter: float) -> float:
        calls.append(parameter)
        return count(parameter)

    return mean_count, calls


@given(st.floats(-3, 3).filter(lambda s: abs(s) > 0.3), st.floats(0.7, 1.4), st.floats(50, 3000))
def test_a_straight_line_is_found_in_few_steps(slope: float, error: float, at_guess: float) -> None:
    mean_count, calls = counting(lambda p: at_guess * (p / 10) ** (slope * error))
    parameter = calibrate(method(slope), 600, 150_000, mean_count)
    assert abs(log(at_guess * (parameter / 10) ** (slope * error) / 600)) <= CLOSE
    assert len(calls) <= TRIES


def test_no_more_than_needed() -> None:
    mean_count, calls = counting(lambda p: 60 * p)
    assert calibrate(method(1), 600, 0, mean_count) == 10
    assert calls == [10]
    mean_count, calls = counting(lambda p: 30 * p)
    assert calibrate(method(1), 600, 0, mean_count) == 20
    assert calls == [10, 20]
    assert calibrate(method(1), 600, 0, mean_count, drift=2) == 20
    assert calls == [10, 20, 20]


def test_whole_parameters_end_at_the_nearest() -> None:
    mean_count, calls = counting(lambda p: 600 * (15.4 / p) ** 2)
    assert calibrate(method(-2, whole=True), 600, 0, mean_count) == 15
    assert all(p == round(p) for p in calls)


@pytest.mark.parametrize(("wanted", "expected"), [(600, 602), (400, 260), (250, 260), (100, 60)])
def test_jumps(wanted: int, expected: int) -> None:
    """Counts as SEEDS has them: where none is near, the closest below."""
    def seeds(p: float) -> float:
        return 60 if p < 13 else 260 if p < 33 else 602

    assert seeds(calibrate(method(1, whole=True), wanted, 0, seeds)) == expected
    assert expected <= wanted or log(expected / wanted) < MIXABLE


def test_out_of_reach() -> None:
    assert calibrate(method(1), 600, 0, lambda p: 5000 + p) > 0
    assert calibrate(method(1), 600, 0, lambda p: 5) > 0
