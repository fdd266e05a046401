import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from spit.evaluation.faithfulness_ttest import TTest, incomplete_beta, paired_ttest, upper_tail


@given(st.floats(-30, 30), st.integers(1, 60_000))
def test_the_tail_is_scipys(t, freedom):
    assert upper_tail(t, freedom) == pytest.approx(stats.t.sf(t, freedom), rel=1e-8, abs=1e-300)


@given(st.floats(0, 1), st.floats(0.5, 50), st.floats(0.5, 50))
def test_the_incomplete_beta_is_scipys(x, a, b):
    assert incomplete_beta(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-8, abs=1e-12)


def test_pairs_by_hand_and_by_scipy():
    """Differences 1, 2, 3: mean 2, standard error 1/√3."""
    test = paired_ttest([2, 4, 6], [1, 2, 3])
    assert test.t == pytest.approx(2 * 3**0.5)
    assert test.freedom == 2
    random = np.random.default_rng(0)
    ours, theirs = random.random((2, 40))
    expected = stats.ttest_rel(ours, theirs, alternative="greater")
    test = paired_ttest(ours.tolist(), theirs.tolist())
    assert (test.t, test.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_nothing_to_test():
    assert paired_ttest([1], [0]) is None
    assert paired_ttest([1, 2], [0, 1]) is None


def test_the_papers_footnote():
    """t = 6.54 with 49,664 degrees of freedom has p < 10⁻¹⁰."""
    test = TTest(6.54, 49664, upper_tail(6.54, 49664))
    assert test.p < 1e-10
    assert str(test) == "t = 6.54, p < 1e-10"
    assert str(TTest(1.0, 9, 0.171)) == "t = 1.00, p = 0.17"
