"""App. B and FACTS §1, computed again in float64 with scipy; the integers may be off by their rounding."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from paper.appendix_b import MEAN, contrast, diffuse
from spit.kernels import SCALE
from spit.tokenizers.preprocess import superpixel_features

Photo = Callable[[str, int], Tensor]


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
def test_photographs(photo: Photo, name: str) -> None:
    image = photo(name, 64)[:, :50]
    got = superpixel_features(image[None], "paper")[0]
    assert got.shape == (3, 50, 64)
    assert got.dtype == torch.int16
    assert int(got.abs().max()) <= SCALE
    error = np.abs(got.numpy() / SCALE - diffuse(contrast(image)))
    assert np.median(error) < 0.002
    assert error.max() < 0.03


def test_diffusion_keeps_edges_and_smooths_the_rest() -> None:
    """A step of 128 grey values stays where it is; a ripple of 1 is all but gone."""
    image = torch.full((1, 3, 9, 12), 90, dtype=torch.uint8)
    image[..., ::2] += 1
    image[..., 6:] += 128
    rows = superpixel_features(image, "paper")[0, 0]
    before = SCALE * contrast(image[0])[0]
    assert (rows[:, 6:] - rows[:, :6].max()).min() > 0.9 * (before[:, 6:].min() - before[:, :6].max())
    assert int(rows[4, 1:5].max() - rows[4, 1:5].min()) < 0.3 * np.ptp(before[4, 1:5])


@pytest.mark.parametrize("kind", ["paper", "saturated"])
def test_grey_is_three_equal_channels(photo: Photo, kind: str) -> None:
    grey = photo("coffee", 24)[None, :1]
    assert torch.equal(superpixel_features(grey, kind), superpixel_features(grey.repeat(1, 3, 1, 1), kind))


@pytest.mark.parametrize("channels", [2, 4, 5, 9])
def test_other_channels(channels: int) -> None:
    image = torch.rand(2, channels, 6, 6, generator=torch.Generator().manual_seed(0))
    assert superpixel_features(image, "paper").shape == (2, channels, 6, 6)
    with pytest.raises(ValueError, match=f"1 or 3 channels, got {channels}; superpixels with features='paper'"):
        superpixel_features(image, "saturated")


@pytest.mark.parametrize("kind", ["paper", "saturated"])
def test_floats_are_seen_in_8_bits(photo: Photo, kind: str) -> None:
    image = photo("astronaut", 24)[None]
    exact = superpixel_features(image, kind)
    for near in (image.double() / 255, image.float() / 255, (image.float() + 0.3).clamp(max=255) / 255):
        assert torch.equal(superpixel_features(near, kind), exact)


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1)])
def test_thin_images(size: tuple[int, int]) -> None:
    image = torch.randint(0, 256, (1, 3, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    got = superpixel_features(image, "paper")[0].numpy() / SCALE
    assert np.abs(got - diffuse(contrast(image[0]))).max() < 0.02
