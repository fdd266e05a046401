"""spit.superpixels, as a user of scikit-image meets it."""

import inspect
from typing import Never

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage import color, data, img_as_float, img_as_uint, measure, segmentation

import spit
from spit.arrays import OPTIONS


def explained(image: np.ndarray, labels: np.ndarray) -> float:
    values = image.reshape(-1, image.shape[2]).astype(float)
    sizes = np.bincount(labels.ravel())
    means = np.stack([np.bincount(labels.ravel(), values[:, c]) for c in range(3)], 1) / np.maximum(sizes, 1)[:, None]
    within = ((values - means[labels.ravel()]) ** 2).sum()
    return float(1 - within / ((values - values.mean(0)) ** 2).sum())


@pytest.mark.parametrize("n", [1, 7, 100, 600, 3000])
def test_so_many_as_asked_for(n: int) -> None:
    labels = spit.superpixels(data.chelsea(), n=n)
    assert labels.shape == (300, 451)
    assert labels.dtype == np.int32
    assert np.unique(labels).tolist() == list(range(1, n + 1))
    assert measure.label(labels, connectivity=1).max() == n


def test_regionprops_and_the_tools_of_scikit_image_take_them() -> None:
    image = data.coffee()
    labels = spit.superpixels(image, n=200)
    regions = measure.regionprops(labels, intensity_image=image)
    assert len(regions) == 200
    assert sum(region.area for region in regions) == labels.size
    assert color.label2rgb(labels, image, kind="avg", bg_label=-1).shape == image.shape
    assert segmentation.mark_boundaries(image, labels).shape == image.shape


def test_better_than_slic_at_the_same_count_and_better_refined() -> None:
    image = data.astronaut()
    slic = segmentation.slic(image, n_segments=300, start_label=1)
    count = len(np.unique(slic))
    ours, plain = spit.superpixels(image, n=count), spit.superpixels(image, n=count, refine=0)
    assert explained(image, ours) > explained(image, plain) > explained(image, slic)


def test_the_image_may_be_grey_or_float_or_bool_and_is_not_touched() -> None:
    image = data.camera()
    before = image.copy()
    labels = spit.superpixels(image, n=50)
    assert np.array_equal(image, before)
    assert np.array_equal(labels, spit.superpixels(img_as_float(image), n=50))
    assert np.array_equal(labels, spit.superpixels(image[..., None], n=50))
    assert spit.superpixels(image > 100, n=50).max() == 50
    assert np.array_equal(labels, spit.superpixels(img_as_uint(image), n=50))
    assert np.array_equal(labels[:, ::-1] - 1, spit.superpixels(image, n=50, start_label=0)[:, ::-1])


@pytest.mark.parametrize(("name", "message"), [
    ("n_segments", "^expected n, got n_segments; slic's n_segments is n here$"),
    ("startlabel", r"or start_label, got startlabel; did you mean 'start_label'\?$"),
    ("sigma", "^expected n, compactness, mask, channel_axis, refine or start_label, got sigma; "
              "spit.SuperpixelTokenizer has all options$"),
])
def test_unknown_options(name: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        spit.superpixels(data.camera(), **{name: 100})
    signature = inspect.signature(spit.superpixels).parameters
    assert tuple(signature)[1:-1] == OPTIONS
    assert signature["unknown"].annotation is Never, "type checkers flag them"


@pytest.mark.parametrize("n", [2, 50, 600, 20_000])
def test_flat_areas_are_not_joined_across_edges(n: int) -> None:
    image = np.full((100, 200, 3), 255, np.uint8)
    image[30:70, 50:150] = (200, 30, 30)
    labels = spit.superpixels(image, n)
    assert np.unique(labels).tolist() == list(range(1, n + 1))
    assert explained(image, labels) == 1
    assert measure.label(labels, connectivity=1).max() == n


def squared_error(image: np.ndarray, labels: np.ndarray) -> float:
    return sum(float(((image[labels == v] - image[labels == v].mean(0)) ** 2).sum()) for v in np.unique(labels))


def test_noisy_quadrants_as_scikit_image_tests_slic() -> None:
    rng = np.random.default_rng(0)
    image = np.zeros((20, 21, 3))
    image[:10, :10, 0] = image[10:, :10, 1] = image[10:, 10:, 2] = 1
    image = np.clip(image + 0.01 * rng.normal(size=image.shape), 0, 1)
    for n in (4, 8):
        slic = segmentation.slic(image, n_segments=n, sigma=0, enforce_connectivity=False, start_label=0)
        labels = spit.superpixels(image, n)
        assert squared_error(image, labels) <= 1.1 * squared_error(image, slic) < 0.05, n
    assert spit.superpixels(image, 4)[[0, 0, -1, -1], [0, -1, 0, -1]].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("compactness", [0.1, 0.3, 10])
def test_flat_images_become_even_cells(compactness: float) -> None:
    labels = spit.superpixels(np.zeros((200, 200), np.uint8), 200, compactness=compactness)
    sizes = np.bincount(labels.ravel())[1:]
    assert (sizes.min() > 50, 180 < np.median(sizes) < 220, sizes.max() < 400) == (True, True, True), sizes


def test_a_disk_on_white_stands_alone_and_the_white_is_even() -> None:
    y, x = np.mgrid[:200, :200]
    disk = (y - 100) ** 2 + (x - 90) ** 2 < 50**2
    labels = spit.superpixels(np.where(disk, np.uint8(40), np.uint8(255)), 200)
    assert not set(labels[disk]) & set(labels[~disk])
    sizes = np.bincount(labels.ravel())[1:]
    assert sizes.max() < 3 * np.median(sizes)


def test_an_outlier_joins_nobody_until_few_regions_are_left() -> None:
    image = np.full((40, 40), 100, np.uint8)
    image[11, 17] = 255
    labels = spit.superpixels(image, 6)
    assert (labels == labels[11, 17]).sum() == 1


def test_compactness() -> None:
    image = data.chelsea()
    edges = [segmentation.find_boundaries(spit.superpixels(image, 300, compactness=value)).mean()
             for value in (0.1, 0.5, 2, 10)]
    assert edges == sorted(edges, reverse=True)
    assert edges[0] > 1.3 * edges[-1]
    even = np.bincount(spit.superpixels(image, 300, compactness=100, refine=0).ravel())[1:]
    assert even.max() < 3 * np.median(even)


@pytest.mark.parametrize("refine", [0, 3])
def test_a_mask(refine: int) -> None:
    image, (y, x) = data.chelsea(), np.mgrid[:300, :451]
    mask = (y - 150) ** 2 + (x - 200) ** 2 < 120**2
    mask[:, 190:195] = False  # two pieces
    before = mask.copy()
    labels = spit.superpixels(image, 80, mask=mask, refine=refine)
    assert np.array_equal(mask, before)
    assert np.array_equal(labels > 0, mask)
    assert np.unique(labels).tolist() == list(range(81))
    assert measure.label(labels, background=0, connectivity=1).max() == 80
    assert spit.superpixels(image, 1, mask=mask, refine=refine).max() == 2, "a label for each piece"
    assert spit.superpixels(image, 80, mask=mask, refine=refine, start_label=5).min() == 4
    everything = spit.superpixels(image, 80, mask=np.ones(mask.shape, bool), refine=refine)
    assert np.array_equal(everything, spit.superpixels(image, 80, refine=refine))


@given(seed=st.integers(0, 10_000), n=st.integers(1, 60), refine=st.integers(0, 2), dense=st.floats(0.05, 1))
@settings(max_examples=100)
def test_any_mask(seed: int, n: int, refine: int, dense: float) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random((12, 17)) < dense
    mask[3, 4] = True
    labels = spit.superpixels(rng.integers(0, 256, (12, 17, 3), np.uint8), n, mask=mask, refine=refine)
    count = min(max(n, measure.label(mask, connectivity=1).max()), mask.sum())
    assert np.unique(labels[mask]).tolist() == list(range(1, count + 1))
    assert (labels[~mask] == 0).all()
    assert measure.label(labels, background=0, connectivity=1).max() == count


def test_the_axis_of_the_channels() -> None:
    image = data.chelsea()[:60, :90]
    labels = spit.superpixels(image, 40)
    assert np.array_equal(labels, spit.superpixels(np.moveaxis(image, -1, 0), 40, channel_axis=0))
    assert np.array_equal(labels.T, spit.superpixels(image, 40).T)
    grey = image[..., 0]
    assert np.array_equal(spit.superpixels(grey, 40), spit.superpixels(grey, 40, channel_axis=None))
    bands = np.concatenate([image, image[::-1], image[:, ::-1]], 2)
    assert spit.superpixels(bands, 40).max() == 40


def test_no_more_than_there_are_pixels() -> None:
    assert spit.superpixels(np.zeros((2, 2), np.uint8), n=9).max() == 4
    assert spit.superpixels(data.coffee()[:50, :50], n=2000).max() == 2000


def test_a_view_and_its_copy_agree() -> None:
    image = data.chelsea()[::2, ::-3]
    assert np.array_equal(spit.superpixels(image, n=40), spit.superpixels(image.copy(), n=40))


@pytest.mark.parametrize(("image", "options", "message"), [
    (np.zeros(5, np.uint8), {}, r"shape \(H, W\) or \(H, W, C\), got \(5,\)"),
    (np.zeros((4, 4, 3), np.uint8), {"n": 0}, "1 or more, got 0"),
    (np.zeros((4, 4, 3), np.uint8), {"n": 2.5}, "whole number of 1 or more, got 2.5"),
    (np.zeros((4, 4, 3), np.uint8), {"refine": -1}, "refine of at least 0, got -1"),
    (np.zeros((3, 40, 60), np.uint8), {}, "expected channels last"),
    (np.zeros((9, 40, 60), np.uint8), {"channel_axis": None}, r"\(H, W\) with channel_axis=None, got \(9, 40, 60\)"),
    (np.zeros((4, 4, 3), np.uint8), {"compactness": -0.1}, "compactness of at least 0, got -0.1"),
    (np.zeros((4, 4, 3), np.uint8), {"mask": np.ones((3, 4), bool)}, r"mask of bool and shape \(4, 4\), got bool"),
    (np.zeros((4, 4, 3), np.uint8), {"mask": np.ones((4, 4))}, r"mask of bool and shape \(4, 4\), got float64"),
    (np.zeros((4, 4, 3), np.uint8), {"mask": np.zeros((4, 4), bool)}, "mask with at least one pixel"),
    (np.zeros((4, 4, 3), np.uint8), {"start_label": 1.5}, "start_label as a whole number, got 1.5"),
    ([], {}, r"at least one pixel and channel, got shape \(0,\)"),
    (np.zeros((0, 5, 3), np.uint8), {}, r"at least one pixel and channel, got shape \(0, 5, 3\)"),
    (np.full((4, 4, 3), 7.0), {}, r"float images in \[0, 1\]"),
    (np.full((4, 4, 3), np.nan), {}, "NaN"),
])
def test_errors(image: np.ndarray, options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spit.superpixels(image, **options)


@pytest.mark.parametrize(("image", "message"), [
    (np.zeros((4, 4, 3), np.int32), "got int32; skimage.util.img_as_float"),
    (torch.zeros(3, 4, 4), r"image.movedim\(0, -1\).numpy\(\)"),
    ("photo.jpg", "got the path 'photo.jpg'; read it"),
    (None, r"shape \(H, W\) or \(H, W, C\), got NoneType"),
])
def test_what_is_no_image_array(image: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        spit.superpixels(image)  # type: ignore[arg-type]
