import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from skimage.metrics import contingency_table

from spit.evaluation.superpixels import achievable_accuracy, undersegmentation_error

MAPS = array_shapes(min_dims=2, max_dims=2, max_side=9).flatmap(
    lambda shape: st.tuples(*2 * [arrays(np.int64, shape, elements=st.integers(0, 4))]))


def test_by_hand() -> None:
    """Regions A (6 pixels: 4 in one segment, 2 in the other) and B (4 pixels: 1 and 3)."""
    labels = np.array([[0, 0, 0, 0, 0], [0, 1, 1, 1, 1]])
    truth = np.array([[5, 5, 5, 5, 8], [8, 5, 8, 8, 8]])
    assert achievable_accuracy(labels, truth) == pytest.approx((4 + 3) / 10)
    assert undersegmentation_error(labels, truth) == pytest.approx((2 + 2 + 1 + 1) / 10)


def test_three_segments_in_a_region() -> None:
    """One region of 6 over segments of 3, 2, 1: min(3, 3) + min(2, 4) + min(1, 5) = 6, beyond 1 − ASA = .5."""
    labels, truth = np.zeros((1, 6), int), np.array([[0, 0, 0, 1, 1, 2]])
    assert undersegmentation_error(labels, truth) == pytest.approx(1)
    assert achievable_accuracy(labels, truth) == pytest.approx(0.5)


@given(MAPS)
def test_against_scikit_image_s_contingency_table(maps: tuple[np.ndarray, np.ndarray]) -> None:
    labels, truth = maps
    table = np.asarray(contingency_table(truth, labels).todense())  # a row for each segment
    inside = table.sum(axis=0)
    assert achievable_accuracy(labels, truth) == pytest.approx(table.max(axis=0).sum() / labels.size)
    assert undersegmentation_error(labels, truth) == pytest.approx(
        np.minimum(table, inside - table).sum() / labels.size)


@given(MAPS)
def test_perfect_where_no_region_straddles(maps: tuple[np.ndarray, np.ndarray]) -> None:
    labels, truth = maps
    fine = labels * 5 + truth
    pixels = np.arange(labels.size).reshape(labels.shape)
    for inside in (fine, pixels, truth):
        assert achievable_accuracy(inside, truth) == 1
        assert undersegmentation_error(inside, truth) == 0
    assert achievable_accuracy(labels, truth) <= 1
    assert undersegmentation_error(labels, truth) >= 1 - achievable_accuracy(labels, truth) - 1e-12


def test_other_size() -> None:
    with pytest.raises(ValueError, match="expected a truth of the labels' size"):
        achievable_accuracy(np.zeros((2, 3), int), np.zeros((3, 2), int))
