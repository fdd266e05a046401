import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from spit.evaluation.superpixels.boundaries import boundary_pixels, boundary_recall, tolerance, widen

MAPS = arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 3))


def columns(at: int, height: int = 3, width: int = 10) -> np.ndarray:
    """Two regions side by side, the second from this column on."""
    return np.broadcast_to((np.arange(width) >= at).astype(int), (height, width))


def test_by_hand() -> None:
    """The truth's boundary is columns 3 and 4. Of one at 5 and 6 the window of one pixel reaches column 4 alone."""
    assert boundary_recall(columns(4), columns(4), radius=0) == 1
    assert boundary_recall(columns(6), columns(4), radius=0) == 0
    assert boundary_recall(columns(6), columns(4), radius=1) == 0.5
    assert boundary_recall(columns(6), columns(4), radius=2) == 1


def test_the_window_is_square() -> None:
    labels, truth = np.zeros((5, 5), int), np.zeros((5, 5), int)
    truth[0, 0] = labels[4, 4] = 1  # boundary of the truth: (0,0) (0,1) (1,0); of the labels: (4,4) (3,4) (4,3)
    assert boundary_recall(labels, truth, radius=2) == 0
    assert boundary_recall(labels, truth, radius=3) == pytest.approx(2 / 3)


def test_tolerance_on_bsds_is_one_pixel() -> None:
    assert tolerance((321, 481)) == tolerance((481, 321)) == 1
    assert tolerance((100, 100)) == 0
    assert tolerance((600, 800)) == 3  # 2.5, rounded up


def test_nothing_to_find() -> None:
    assert boundary_recall(columns(4), np.zeros((3, 10), int)) == 1
    assert boundary_recall(np.zeros((3, 10), int), columns(4)) == 0


@given(MAPS)
def test_a_boundary_pixel_has_another_label_beside_it(labels: np.ndarray) -> None:
    found = boundary_pixels(labels)
    for y, x in np.ndindex(labels.shape):
        beside = [labels[v, u] for v, u in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1))
                  if 0 <= v < labels.shape[0] and 0 <= u < labels.shape[1]]
        assert found[y, x] == any(label != labels[y, x] for label in beside)


@given(MAPS, st.integers(0, 12))
def test_widening_reaches_all_of_a_window(labels: np.ndarray, radius: int) -> None:
    mask = labels > 2
    wide = widen(mask, radius)
    for y, x in np.ndindex(mask.shape):
        assert wide[y, x] == mask[max(y - radius, 0) : y + radius + 1, max(x - radius, 0) : x + radius + 1].any()


@given(MAPS)
def test_pixels_recall_everything(truth: np.ndarray) -> None:
    assert boundary_recall(np.arange(truth.size).reshape(truth.shape), truth) == 1
