from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spit.evaluation.intervals import Z, difference, mean, proportion, share, wilson


def test_by_hand() -> None:
    """Of n none: up to z²/(n + z²). Of n half: ½ ± z/(2 √(n + z²))."""
    assert wilson(0, 10) == (0, pytest.approx(Z**2 / (10 + Z**2)))
    assert wilson(10, 10) == (pytest.approx(10 / (10 + Z**2)), 1)
    half = Z / (2 * sqrt(10 + Z**2))
    assert wilson(5, 10) == pytest.approx((0.5 - half, 0.5 + half))


@pytest.mark.parametrize(("right", "images"), [(0, 7), (1, 9), (702, 1000), (1000, 1000)])
def test_scipy_agrees(right: int, images: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    theirs = stats.binomtest(right, images).proportion_ci(0.95, method="wilson")
    assert wilson(right, images) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@given(st.integers(1, 3000), st.data())
def test_the_interval_solves_wilsons_equation(images: int, draw: st.DataObject) -> None:
    """(p − b)² = z² b(1 − b)/n at both bounds b: those are all the shares that p does not speak against."""
    right = draw.draw(st.integers(0, images))
    low, high = wilson(right, images)
    assert 0 <= low <= right / images <= high <= 1
    for bound in (low, high):
        assert (right / images - bound) ** 2 == pytest.approx(Z**2 * bound * (1 - bound) / images, abs=1e-9)
    mirrored = wilson(images - right, images)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize(("right", "images"), [(0, 0), (3, 2), (-1, 2)])
def test_no_such_share(right: int, images: int) -> None:
    with pytest.raises(ValueError, match="right ≤ images"):
        wilson(right, images)


def test_one_run_has_no_spread() -> None:
    score = proportion([[1, 0, 1, 1]])
    assert (score.value, score.spread, score.images) == (0.75, None, 4)
    assert (score.low, score.high) == wilson(3, 4)
    assert str(score) == "0.7500 (0.3006 to 0.9544)"


def test_runs_share_their_images() -> None:
    """Two runs of .75 and .25: their mean, their deviation, and the interval of four images, not eight."""
    score = proportion([[1, 1, 1, 0], [0, 0, 1, 0]])
    assert score.value == 0.5
    assert score.spread == pytest.approx(0.25 * sqrt(2))
    assert (score.low, score.high) == wilson(2, 4)
    assert "± 0.3536" in str(score)


def test_a_mean() -> None:
    score = mean([1, 2, 3])
    assert (score.value, score.images) == (2, 3)
    assert score.high - score.value == pytest.approx(Z / sqrt(3))
    assert (mean([7]).low, mean([7]).high) == (7, 7)


def test_a_share_stays_between_0_and_1() -> None:
    plain, score = (function([0.0, 0.0, 0.9]) for function in (mean, share))
    assert (score.value, score.high, score.low) == (plain.value, plain.high, 0.0)
    assert plain.low < 0
    assert share([1.0, 1.0, 0.7]).high == 1.0


def test_a_difference_is_paired() -> None:
    ours, base = [[1, 1, 0, 1]], [[1, 0, 0, 1]]
    assert difference(ours, base).value == 0.25
    assert difference(ours, base).high - 0.25 == pytest.approx(Z * 0.5 / 2)  # 0, 1, 0, 0 deviate by 1/2
    same = difference(base, base)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert difference([[1, 0], [0, 0]], [[0, 0]]).value == 0.25
