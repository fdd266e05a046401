import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from spit.errors import MissingExtra
from spit.evaluation.superpixels.regions import connected_regions, count_regions

SPIRAL = np.array([[1, 1, 1, 1, 1],
                   [0, 0, 0, 0, 1],
                   [1, 1, 1, 0, 1],
                   [1, 0, 0, 0, 1],
                   [1, 1, 1, 1, 1]])


def test_a_diagonal_touch_does_not_connect() -> None:
    assert connected_regions([[5, 2], [2, 5]]).tolist() == [[0, 1], [2, 3]]
    assert count_regions([[5, 2], [2, 5]]) == 4


def test_a_spiral_is_two_regions() -> None:
    assert np.array_equal(connected_regions(SPIRAL), 1 - SPIRAL)
    assert count_regions(SPIRAL) == 2


@given(arrays(np.int32, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.integers(-1, 2)))
def test_the_regions_of_a_flood(labels: np.ndarray) -> None:
    """Filled one by one from their first pixels, in raster order."""
    expected = np.full(labels.shape, -1)
    count = 0
    for start in np.ndindex(labels.shape):
        if expected[start] >= 0:
            continue
        waiting = [start]
        while waiting:
            y, x = waiting.pop()
            if (0 <= y < labels.shape[0] and 0 <= x < labels.shape[1] and expected[y, x] < 0
                    and labels[y, x] == labels[start]):
                expected[y, x] = count
                waiting += [(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)]
        count += 1
    assert np.array_equal(connected_regions(labels), expected)
    assert count_regions(labels) == count


def test_without_scikit_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skimage.measure", None)
    with pytest.raises(MissingExtra, match=r"scikit-image.*evaluate"):
        connected_regions([[0]])
