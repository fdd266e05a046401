"""docs/published.md, computed again in float64 with scipy."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import Tensor

from paper.appendix_b import contrast, diffuse
from spit.interop.published.contraction import ONE
from spit.interop.published.preprocess import published_features

Photo = Callable[[str, int], Tensor]


def arcsinh(x: np.ndarray, factor: float) -> np.ndarray:
    return np.arcsinh(factor * x) / np.arcsinh(factor)


def published(image: Tensor) -> np.ndarray:
    """docs/published.md: saturation within the gamut, and the length of two components after their contrast."""
    weights = np.array([0.299, 0.587, 0.114])
    colors = (contrast(image) + 1) / 2
    luma = np.tensordot(weights, colors, 1)
    colors = (luma + 2.718 * (colors - luma)).clip(0, 1)
    luma = np.tensordot(weights, colors, 1)
    ycbcr = 2 * np.stack([luma, 0.564 * (colors[2] - luma) + 0.5, 0.713 * (colors[0] - luma) + 0.5]) - 1
    grey = image.double().numpy().mean(0) / 255
    kernel = np.array([[3, 10, 3], [0, 0, 0], [-3, -10, -3]]) / 16
    slopes = [arcsinh(ndimage.correlate(grey, one, mode="nearest"), 27.8) for one in (kernel, kernel.T)]
    edges = 2 * np.hypot(*slopes) / (np.sqrt(2) * arcsinh(np.array(13 / 16), 27.8)) - 1
    return np.concatenate([diffuse(arcsinh(ycbcr, 10.0)), edges[None]])


@pytest.mark.parametrize("name", ["coffee", "chelsea", "rocket"])
def test_photographs_are_as_fine_as_float32(photo: Photo, name: str) -> None:
    image = photo(name, 64)[:, :50]
    got = published_features(image[None])[0]
    assert (got.dtype, got.shape) == (torch.int32, (4, 50, 64))
    assert int(got.abs().max()) <= ONE
    error = np.abs(got.numpy() / ONE - published(image))
    assert np.median(error) < 2e-7
    assert error.max() < 5e-5  # diffusion can double a rounding error at each step


def test_the_edge_channel_reaches_one_and_no_more() -> None:
    """The largest of all windows of black and white pixels has the closed form by which lengths are divided."""
    windows = torch.tensor([[255 * (code >> bit & 1) for bit in range(9)] for code in range(512)], dtype=torch.uint8)
    edges = published_features(windows.view(512, 1, 3, 3).expand(-1, 3, -1, -1))[:, 3, 1, 1]
    assert abs(int(edges.max()) - ONE) <= 1
    assert int(edges.min()) == -ONE


def test_grey_is_three_equal_channels_and_floats_are_seen_in_8_bits(photo: Photo) -> None:
    image = photo("coffee", 24)[None]
    exact = published_features(image)
    assert torch.equal(published_features(image.double() / 255), exact)
    assert torch.equal(published_features(image[:, :1]), published_features(image[:, :1].repeat(1, 3, 1, 1)))


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1)])
def test_thin_images(size: tuple[int, int]) -> None:
    image = torch.randint(0, 256, (1, 3, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    assert np.abs(published_features(image)[0].numpy() / ONE - published(image[0])).max() < 5e-5
