"""What scikit-image's tests ask of ``slic``, asked of ``spit.superpixels``; written anew."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from skimage import data, measure

import spit

COLORS = {
    "grey": [0.33, 0, 0.67, 1],
    "colour": [(1, 0, 0), (0, 0, 0), (0, 1, 0), (0, 0, 1)],
    "eight bands": np.kron(np.eye(4), np.ones(2)).tolist(),
}
DTYPES = [np.float16, np.float32, np.float64, np.uint8, np.int16, np.uint16, np.int32, np.int64]


def halves(shape: tuple[int, ...]) -> np.ndarray:
    """The parts that come of cutting every axis in the middle, numbered from 1."""
    parts = np.zeros(shape, int)
    for grid, side in zip(np.indices(shape, sparse=True), shape, strict=True):
        parts = 2 * parts + (grid >= side // 2)
    return parts + 1


def painted(parts: np.ndarray, colors: Any, noise: float) -> np.ndarray:
    image = np.asarray(colors, float)[parts - 1]
    return (image + noise * np.random.default_rng(0).normal(size=image.shape)).clip(0, 1)


def margin(shape: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(shape, bool)
    mask[(slice(2, -2),) * len(shape)] = True
    return mask


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("refine", [0, 3])
@pytest.mark.parametrize("compactness", [0.1, 0.3, 1])
@pytest.mark.parametrize("name", COLORS)
def test_quadrants(name: str, compactness: float, refine: int, masked: bool) -> None:
    parts = halves((20, 21))
    mask = margin(parts.shape) if masked else None
    labels = spit.superpixels(painted(parts, COLORS[name], 0.01), 4, compactness=compactness, refine=refine, mask=mask,
                              channel_axis=None if name == "grey" else -1)
    assert np.array_equal(labels, parts if mask is None else np.where(mask, parts, 0))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("spacing", [None, (2, 1, 1)])
@pytest.mark.parametrize("kind", ["grey", "colour"])
def test_octants(kind: str, spacing: tuple[int, ...] | None, masked: bool) -> None:
    parts = halves((20, 21, 22))
    colors = np.arange(8) / 7 if kind == "grey" else list(product((0, 1), repeat=3))
    mask = margin(parts.shape) if masked else None
    labels = spit.superpixels(painted(parts, colors, 0.001), 8, mask=mask, spacing=spacing,
                              channel_axis=None if kind == "grey" else -1)
    assert np.array_equal(labels, parts if mask is None else np.where(mask, parts, 0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_types(dtype: Any) -> None:
    parts = halves((20, 21))
    image = np.rint(100 * painted(parts, COLORS["colour"], 0.01)).astype(dtype)
    assert np.array_equal(spit.superpixels(image, 4), parts)


def test_magnitude_is_nothing_to_raw_values() -> None:
    image = data.astronaut()[::4, ::4].astype(float)
    labels = spit.superpixels(image, 50, to="raw")
    for other in (image * 256, image / 2**30, image * 2 - 2**20, image.astype(np.uint16) * 256, image.astype(np.uint8)):
        assert np.array_equal(spit.superpixels(other, 50, to="raw"), labels)


@pytest.mark.parametrize("mask", [None, np.array([[False, True, True, True, False]] * 2)])
def test_spacing(mask: np.ndarray | None) -> None:
    image = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]) + 0.1 * np.random.default_rng(0).normal(size=(2, 5))
    inside = True if mask is None else mask
    options: dict[str, Any] = {"n": 2, "mask": mask, "to": "raw", "refine": 0}
    assert np.array_equal(spit.superpixels(image, **options), inside * np.array([[1, 1, 1, 2, 2], [1, 1, 2, 2, 2]]))
    rows = np.array([[1] * 5, [2] * 5])
    assert np.array_equal(spit.superpixels(image, spacing=(2000, 1), **options), inside * rows)


@pytest.mark.parametrize("masked", [False, True])
def test_connectivity(masked: bool) -> None:
    image = np.array([[0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 0]], float)
    mask = np.zeros(image.shape, bool)
    mask[:, 1:-1] = True
    labels = spit.superpixels(image, 2, compactness=0.0001, min_size=3, mask=mask if masked else None)
    assert np.array_equal(labels, np.array([[1, 1, 1, 2, 2, 2]] * 3) * (mask if masked else 1))


@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (1, 40, 3), (40, 1, 3), (1, 1), (2, 1)])
def test_lines(shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).random(shape)
    for n in (1, 7, 1000):
        labels = spit.superpixels(image, n)
        count = min(n, shape[0] * shape[1])
        assert np.unique(labels).tolist() == list(range(1, count + 1))
        assert measure.label(labels, connectivity=1).max() == count
    planes = spit.superpixels(np.random.default_rng(0).random((1, *shape[:2])), 7, channel_axis=None)
    assert planes.max() == min(7, planes.size)


@pytest.mark.parametrize("shape", [(20, 21), (5, 8, 9)])
def test_more_than_there_are_pixels(shape: tuple[int, ...]) -> None:
    image, mask = painted(halves(shape), np.arange(8) / 7, 0.003), margin(shape)
    labels = spit.superpixels(image, 500, channel_axis=None)
    assert labels.ravel().tolist() == list(range(1, min(500, image.size) + 1)) or image.size > 500
    assert labels.max() == min(500, image.size)
    inside = spit.superpixels(image, 500, channel_axis=None, mask=mask)
    assert inside[mask].tolist() == list(range(1, mask.sum() + 1))


def test_one_region() -> None:
    parts = halves((20, 21))
    assert (spit.superpixels(painted(parts, COLORS["colour"], 0.01), 1) == 1).all()
    assert (spit.superpixels(np.zeros((4, 5, 6)), 1, channel_axis=None) == 1).all()


@pytest.mark.parametrize("start", [0, 1, 10, -3])
def test_start_label(start: int) -> None:
    parts, mask = halves((20, 21)), margin((20, 21))
    image = painted(parts, COLORS["colour"], 0.01)
    assert np.array_equal(spit.superpixels(image, 4, start_label=start), parts + start - 1)
    labels = spit.superpixels(image, 4, start_label=start, mask=mask)
    assert np.array_equal(labels, np.where(mask, parts, 0) + start - 1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(value: float) -> None:
    image = np.random.default_rng(0).random((10, 10))
    image[3, 3] = value
    with pytest.raises(ValueError, match="NaN or infinity in 1 place; give nodata"):
        spit.superpixels(image)
    labels = spit.superpixels(image, 5, mask=np.isfinite(image))
    assert labels[3, 3] == 0
    assert labels.max() == 5


def test_two_bands_are_no_lab() -> None:
    with pytest.raises(ValueError, match="RGB image for to='lab', got 2 bands"):
        spit.superpixels(np.zeros((2, 5, 2)), to="lab")
