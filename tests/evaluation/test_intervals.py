import sys
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spit.errors import MissingExtra
from spit.evaluation.intervals import Score, TTest, Z, difference, mean, paired_ttest, proportion, share


def wilson(right: int, images: int) -> tuple[float, float]:
    score = proportion([[1.0] * right + [0.0] * (images - right)])
    return score.low, score.high


def test_by_hand() -> None:
    """Of n none: up to z²/(n + z²). Of n half: ½ ± z/(2 √(n + z²))."""
    assert wilson(0, 10) == (0, pytest.approx(Z**2 / (10 + Z**2)))
    assert wilson(10, 10) == (pytest.approx(10 / (10 + Z**2)), 1)
    half = Z / (2 * sqrt(10 + Z**2))
    assert wilson(5, 10) == pytest.approx((0.5 - half, 0.5 + half))


@given(st.integers(1, 300), st.data())
def test_the_interval_solves_wilsons_equation(images: int, draw: st.DataObject) -> None:
    """(p − b)² = z² b(1 − b)/n at both bounds b."""
    right = draw.draw(st.integers(0, images))
    low, high = wilson(right, images)
    assert 0 <= low <= right / images + 1e-12
    assert right / images - 1e-12 <= high <= 1
    for bound in (low, high):
        assert (right / images - bound) ** 2 == pytest.approx(Z**2 * bound * (1 - bound) / images, abs=1e-9)


def test_a_mean_of_runs_that_is_no_whole_number_is_rounded() -> None:
    """2.5 of 4 images: Python's even 2; the value stays."""
    score = proportion([[1, 1, 1, 0], [1, 1, 0, 0]])
    assert score.value == 0.625
    assert (score.low, score.high) == wilson(2, 4)


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


def test_pairs_by_hand_and_by_scipy() -> None:
    """Differences 1, 2, 3: mean 2, standard error 1/√3."""
    test = paired_ttest([2, 4, 6], [1, 2, 3])
    assert (test.t, test.freedom) == (pytest.approx(2 * 3**0.5), 2)
    assert test.p == pytest.approx(stats.t.sf(test.t, 2))


def test_nothing_to_test() -> None:
    assert paired_ttest([1], [0]) is None
    assert paired_ttest([1, 2], [0, 1]) is None


def test_the_papers_footnote() -> None:
    """t = 6.54 with 49,664 degrees of freedom has p < 10⁻¹⁰."""
    test = TTest(6.54, 49664, float(stats.t.sf(6.54, 49664)))
    assert test.p < 1e-10
    assert str(test) == "t = 6.54, p < 1e-10"
    assert str(TTest(1.0, 9, 0.171)) == "t = 1.00, p = 0.17"


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(MissingExtra, match="evaluate"):
        proportion([[1, 0]])


def test_a_difference_is_paired() -> None:
    ours, base = [[1, 1, 0, 1]], [[1, 0, 0, 1]]
    assert difference(ours, base).value == 0.25
    assert difference(ours, base).high - 0.25 == pytest.approx(Z * 0.5 / 2)  # 0, 1, 0, 0 deviate by 1/2
    same = difference(base, base)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert difference([[1, 0], [0, 0]], [[0, 0]]).value == 0.25


def test_a_difference_has_a_sign() -> None:
    assert Score(0.25, -0.5, 1, 4).signed() == "+0.2500 (-0.5000 to +1.0000)"
