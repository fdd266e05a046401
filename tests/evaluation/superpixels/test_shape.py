from math import pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from spit.evaluation.superpixels import compactness


def test_by_hand() -> None:
    """A 2×2 square (perimeter 8) and a 2×4 rectangle (perimeter 12), weighted 4 and 8."""
    labels = np.array([[0, 0, 1, 1, 1, 1]] * 2)
    square, rectangle = 4 * pi * 4 / 8**2, 4 * pi * 8 / 12**2
    assert square == pytest.approx(pi / 4)
    assert compactness(labels) == pytest.approx((4 * square + 8 * rectangle) / 12)


def test_a_hole_counts_as_perimeter() -> None:
    labels = np.zeros((3, 3), int)
    labels[1, 1] = 1
    assert compactness(labels) == pytest.approx((8 * 4 * pi * 8 / 16**2 + pi / 4) / 9)


@given(arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 3)))
def test_at_most_a_square_s(labels: np.ndarray) -> None:
    assert 0 < compactness(labels) <= pi / 4 + 1e-12
    assert compactness(np.arange(labels.size).reshape(labels.shape)) == pytest.approx(pi / 4)
