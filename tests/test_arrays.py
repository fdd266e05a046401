"""spit.superpixels, as a user of scikit-image meets it."""

import inspect
from typing import Never

import numpy as np
import pytest
import torch
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
    assert labels.dtype == np.int64
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
    ("startlabel", r"^expected n, refine or start_label, got startlabel; did you mean 'start_label'\?$"),
    ("sigma", "^expected n, refine or start_label, got sigma; spit.SuperpixelTokenizer has all options$"),
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
