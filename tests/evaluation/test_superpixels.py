import sys
from math import pi
from statistics import fmean

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from skimage import data
from skimage.metrics import contingency_table
from skimage.transform import resize

from spit.errors import MissingExtra
from spit.evaluation.superpixels import (
    achievable_accuracy,
    as_colors,
    as_labels,
    boundary_pixels,
    boundary_recall,
    compactness,
    connected_regions,
    count_regions,
    explained_variation,
    score,
    tolerance,
    undersegmentation_error,
    widen,
)

SPIRAL = np.array([[1, 1, 1, 1, 1],
                   [0, 0, 0, 0, 1],
                   [1, 1, 1, 0, 1],
                   [1, 0, 0, 0, 1],
                   [1, 1, 1, 1, 1]])
IMAGES = arrays(np.uint8, st.tuples(st.integers(1, 8), st.integers(1, 8), st.just(3)))
PAIRS = array_shapes(min_dims=2, max_dims=2, max_side=9).flatmap(
    lambda shape: st.tuples(*2 * [arrays(np.int64, shape, elements=st.integers(0, 4))]))
MAPS = arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 3))


@pytest.fixture(scope="module")
def photo_pixels() -> np.ndarray:
    """A cat, 60×90."""
    return (255 * resize(data.chelsea(), (60, 90), anti_aliasing=True)).round().astype(np.uint8)


@pytest.mark.parametrize("labels", [[[7, 7], [3, 9]], [[-1, -1], [-5, 10**12]], [[1, 1], [0, 2]]])
def test_labels_become_consecutive_in_their_order(labels: list[list[int]]) -> None:
    assert as_labels(labels).tolist() == [[1, 1], [0, 2]]
    assert as_labels(torch.tensor(labels)).tolist() == [[1, 1], [0, 2]]


def test_labels_given_are_not_changed() -> None:
    given = np.array([[5, 7]])
    as_labels(given)[:] = 0
    assert given.tolist() == [[5, 7]]


@pytest.mark.parametrize("labels", [np.zeros((2, 2)), np.zeros(4, int), np.zeros((0, 3), int)])
def test_no_label_map(labels: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"expected labels of integers, \(H, W\), got"):
        as_labels(labels)


def test_colors() -> None:
    image = np.array([[[255, 0, 51]]], np.uint8)
    assert as_colors(image).tolist() == [[[1.0, 0.0, 0.2]]]
    assert as_colors(torch.from_numpy(image).movedim(-1, 0)).tolist() == [[[1.0, 0.0, 0.2]]]
    assert as_colors(image / 255).tolist() == [[[1.0, 0.0, 0.2]]]
    with pytest.raises(ValueError, match="expected an image"):
        as_colors(np.zeros((3, 3)))


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


def test_explained_variation_by_hand() -> None:
    """Grey 0, 2, 4, 10 of mean 4: total 16 + 4 + 0 + 36 = 56; pairs of means 1 and 7: between 2·9 + 2·9 = 36."""
    image = np.array([[0.0, 2, 4, 10]])[:, :, None]
    assert explained_variation(image, [[0, 0, 1, 1]]) == pytest.approx(36 / 56)


def test_channels_are_pooled() -> None:
    """Red varies between the regions, green within: (4·1) / (4·1 + 4·9)."""
    image = np.array([[[0.0, 0, 5], [0, 6, 5], [2, 0, 5], [2, 6, 5]]])
    assert explained_variation(image, [[0, 0, 1, 1]]) == pytest.approx(0.1)


@given(IMAGES)
def test_bounds_of_explained_variation(image: np.ndarray) -> None:
    pixels = np.arange(image.shape[0] * image.shape[1]).reshape(image.shape[:2])
    assert explained_variation(image, pixels) == pytest.approx(1)
    flat = bool((image == image[0, 0]).all())
    assert explained_variation(image, 0 * pixels) == pytest.approx(float(flat))


@given(IMAGES, st.integers(1, 5))
def test_splitting_never_explains_less(image: np.ndarray, parts: int) -> None:
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    coarse, fine = y // 4, (y // 4) * 8 + x % parts
    assert explained_variation(image, fine) >= explained_variation(image, coarse) - 1e-12


def test_types_and_scale_do_not_matter() -> None:
    image = np.random.default_rng(0).integers(0, 256, (6, 7, 3), dtype=np.uint8)
    labels = np.arange(42).reshape(6, 7) // 5
    expected = explained_variation(image, labels)
    assert explained_variation(torch.from_numpy(image).movedim(-1, 0), torch.from_numpy(labels)) == expected
    assert explained_variation(image.astype(float), labels + 9) == pytest.approx(expected)


def test_an_image_of_another_size() -> None:
    with pytest.raises(ValueError, match=r"expected an image of the labels' size \(2, 3\), got \(2, 2\)"):
        explained_variation(np.zeros((2, 2, 3)), np.zeros((2, 3), int))


def test_overlaps_by_hand() -> None:
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


@settings(deadline=None)  # scikit-image imports the table's package at the first call
@given(PAIRS)
def test_against_scikit_image_s_contingency_table(maps: tuple[np.ndarray, np.ndarray]) -> None:
    labels, truth = maps
    table = np.asarray(contingency_table(truth, labels).todense())  # a row for each segment
    inside = table.sum(axis=0)
    assert achievable_accuracy(labels, truth) == pytest.approx(table.max(axis=0).sum() / labels.size)
    assert undersegmentation_error(labels, truth) == pytest.approx(
        np.minimum(table, inside - table).sum() / labels.size)


@given(PAIRS)
def test_perfect_where_no_region_straddles(maps: tuple[np.ndarray, np.ndarray]) -> None:
    labels, truth = maps
    fine = labels * 5 + truth
    pixels = np.arange(labels.size).reshape(labels.shape)
    for inside in (fine, pixels, truth):
        assert achievable_accuracy(inside, truth) == 1
        assert undersegmentation_error(inside, truth) == 0
    assert achievable_accuracy(labels, truth) <= 1
    assert undersegmentation_error(labels, truth) >= 1 - achievable_accuracy(labels, truth) - 1e-12


def test_a_truth_of_another_size() -> None:
    with pytest.raises(ValueError, match="expected a truth of the labels' size"):
        achievable_accuracy(np.zeros((2, 3), int), np.zeros((3, 2), int))


def columns(at: int, height: int = 3, width: int = 10) -> np.ndarray:
    """Two regions side by side, the second from this column on."""
    return np.broadcast_to((np.arange(width) >= at).astype(int), (height, width))


def test_boundary_recall_by_hand() -> None:
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


def test_compactness_by_hand() -> None:
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


def test_every_metric_is_of_the_connected_regions_and_a_mean_over_truths(photo_pixels: np.ndarray) -> None:
    grey = photo_pixels.mean(axis=2)
    labels = (grey // 40).astype(int)
    truths = [(grey > 100).astype(int), (grey > 150).astype(int) * 7]
    scores, regions = score(photo_pixels, labels, truths), connected_regions(labels)
    assert scores["regions"] == regions.max() + 1 > scores["labels"] == len(np.unique(labels))
    assert scores["explained_variation"] == explained_variation(photo_pixels, regions)
    assert scores["achievable_accuracy"] == fmean(achievable_accuracy(regions, truth) for truth in truths)
    assert scores["undersegmentation_error"] == fmean(undersegmentation_error(regions, truth) for truth in truths)
    assert scores["boundary_recall"] == fmean(boundary_recall(regions, truth) for truth in truths)
    assert scores["compactness"] == compactness(regions)
    assert score(torch.from_numpy(photo_pixels).movedim(-1, 0), torch.from_numpy(labels), truths) == scores


def test_pixels_are_perfect(photo_pixels: np.ndarray) -> None:
    pixels = np.arange(photo_pixels[:, :, 0].size).reshape(photo_pixels.shape[:2])
    scores = score(photo_pixels, pixels, [pixels // 50])
    assert (scores["achievable_accuracy"], scores["undersegmentation_error"], scores["boundary_recall"]) == (1, 0, 1)
    assert scores["explained_variation"] == pytest.approx(1)
    assert scores["regions"] == scores["labels"]


def test_a_truth_is_needed(photo_pixels: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected one truth or more"):
        score(photo_pixels, np.zeros((60, 90), int), [])
