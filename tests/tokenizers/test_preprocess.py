"""App. B and FACTS §1, computed again in float64 with scipy; the integers may be off by their rounding."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import Tensor

from spit.kernels import ONE, SCALE
from spit.tokenizers.preprocess import published_features, superpixel_features

Photo = Callable[[str, int], Tensor]
MEAN, SHAPE = (0.485, 0.456, 0.406), (0.539, 0.507, 0.404)


def contrast(image: Tensor) -> np.ndarray:
    """2 (1 − (1 − x^λ)^b) − 1, channel by channel."""
    planes = []
    for x, mean, shape in zip(image.double().numpy() / 255, MEAN, SHAPE, strict=True):
        b = -np.log(2) / np.log(1 - mean**shape)
        planes.append(2 * (1 - (1 - x**shape) ** b) - 1)
    return np.stack(planes)


def diffuse(planes: np.ndarray, steps: int = 4, kappa: float = 0.1, gamma: float = 0.5) -> np.ndarray:
    for _ in range(steps):
        south = np.diff(planes, axis=1, append=planes[:, -1:])
        east = np.diff(planes, axis=2, append=planes[:, :, -1:])
        flow_south, flow_east = south * np.exp(-((south / kappa) ** 2)), east * np.exp(-((east / kappa) ** 2))
        divergence = flow_south - np.pad(flow_south, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        divergence += flow_east - np.pad(flow_east, ((0, 0), (0, 0), (1, 0)))[:, :, :-1]
        planes = np.clip(planes + gamma * divergence, -1, 1)
    return planes


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


def test_flat_images_show_the_contrast_curve() -> None:
    values = torch.arange(256, dtype=torch.uint8)
    images = values[:, None, None, None].expand(-1, 3, 2, 2)
    got = superpixel_features(images, "paper")[:, :, 1, 0]
    expected = np.round(SCALE * contrast(values.expand(3, 1, -1)))[:, 0].T
    assert np.abs(got.numpy() - expected).max() <= 1
    assert got[0].tolist() == [-SCALE] * 3
    assert got[255].tolist() == [SCALE] * 3
    for channel, mean in enumerate(MEAN):  # the mean goes to the middle
        assert abs(int(got[round(255 * mean), channel])) < 0.02 * SCALE


@pytest.mark.parametrize("name", ["coffee", "chelsea", "rocket"])
@pytest.mark.parametrize(("kind", "formula", "channels"), [
    ("paper", lambda image: diffuse(contrast(image)), 3),
    ("published", published, 4),
])
def test_photographs(
    photo: Photo, name: str, kind: str, formula: Callable[[Tensor], np.ndarray], channels: int
) -> None:
    image = photo(name, 64)[:, :50]
    got = superpixel_features(image[None], kind)[0]
    assert got.shape == (channels, 50, 64)
    assert got.dtype == torch.int16
    assert int(got.abs().max()) <= SCALE
    error = np.abs(got.numpy() / SCALE - formula(image))
    assert np.median(error) < 0.002
    assert error.max() < 0.03


@pytest.mark.parametrize("name", ["coffee", "chelsea", "rocket"])
def test_the_features_of_the_release_are_as_fine_as_float32(photo: Photo, name: str) -> None:
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


def test_diffusion_keeps_edges_and_smooths_the_rest() -> None:
    """A step of 128 grey values stays where it is; a ripple of 1 is all but gone."""
    image = torch.full((1, 3, 9, 12), 90, dtype=torch.uint8)
    image[..., ::2] += 1
    image[..., 6:] += 128
    rows = superpixel_features(image, "paper")[0, 0]
    before = SCALE * contrast(image[0])[0]
    assert (rows[:, 6:] - rows[:, :6].max()).min() > 0.9 * (before[:, 6:].min() - before[:, :6].max())
    assert int(rows[4, 1:5].max() - rows[4, 1:5].min()) < 0.3 * np.ptp(before[4, 1:5])


@pytest.mark.parametrize("kind", ["paper", "published"])
def test_grey_is_three_equal_channels(photo: Photo, kind: str) -> None:
    grey = photo("coffee", 24)[None, :1]
    assert torch.equal(superpixel_features(grey, kind), superpixel_features(grey.repeat(1, 3, 1, 1), kind))


@pytest.mark.parametrize("channels", [2, 4, 5, 9])
def test_other_channels(channels: int) -> None:
    image = torch.rand(2, channels, 6, 6, generator=torch.Generator().manual_seed(0))
    assert superpixel_features(image, "paper").shape == (2, channels, 6, 6)
    with pytest.raises(ValueError, match=f"1 or 3 channels, got {channels}; features='paper'"):
        superpixel_features(image, "published")


@pytest.mark.parametrize("kind", ["paper", "published"])
def test_floats_are_seen_in_8_bits(photo: Photo, kind: str) -> None:
    image = photo("astronaut", 24)[None]
    exact = superpixel_features(image, kind)
    for near in (image.double() / 255, image.float() / 255, (image.float() + 0.3).clamp(max=255) / 255):
        assert torch.equal(superpixel_features(near, kind), exact)


@pytest.mark.parametrize("kind", ["paper", "published"])
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1)])
def test_thin_images(kind: str, size: tuple[int, int]) -> None:
    image = torch.randint(0, 256, (1, 3, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    got = superpixel_features(image, kind)[0].numpy() / SCALE
    expected = diffuse(contrast(image[0])) if kind == "paper" else published(image[0])
    assert np.abs(got - expected).max() < 0.02
