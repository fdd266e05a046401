import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from skimage import measure

from spit.evaluation.superpixels import connected_regions, count_regions, is_connected

SPIRAL = np.array([[1, 1, 1, 1, 1],
                   [0, 0, 0, 0, 1],
                   [1, 1, 1, 0, 1],
                   [1, 0, 0, 0, 1],
                   [1, 1, 1, 1, 1]])


def test_a_diagonal_touch_does_not_connect() -> None:
    assert connected_regions([[5, 2], [2, 5]]).tolist() == [[0, 1], [2, 3]]
    assert not is_connected([[5, 2], [2, 5]])


def test_a_spiral_is_two_regions() -> None:
    assert np.array_equal(connected_regions(SPIRAL), 1 - SPIRAL)
    assert is_connected(SPIRAL)
    assert count_regions(SPIRAL) == 2


@given(arrays(np.int32, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.integers(-1, 2)))
def test_the_regions_of_scikit_image(labels: np.ndarray) -> None:
    expected, count = measure.label(labels, background=-9, connectivity=1, return_num=True)
    assert np.array_equal(connected_regions(labels), expected - 1)
    assert count_regions(labels) == count
    assert is_connected(labels) == (count == len(np.unique(labels)))
