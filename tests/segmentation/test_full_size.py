"""Large images: seen at a bounded size, with masks along superpixels of the original."""

import pytest
import torch
from torch.nn import functional as F

import spit
from spit.model import SpitModel
from spit.predictor import SEEN, Predictor, shorter_side
from spit.segmentation.full_size import TILE, along_superpixels


def circle(height: int, width: int) -> torch.Tensor:
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return (rows - height / 2) ** 2 + (columns - width / 2) ** 2 < (0.3 * height) ** 2


@pytest.mark.parametrize("size", [(300, 400), (TILE + 90, TILE + 300)])
def test_the_outline_is_that_of_the_original(size: tuple[int, int]) -> None:
    inside = circle(*size)
    noise = torch.randn(3, *size, generator=torch.Generator().manual_seed(0)) * 5
    image = (torch.where(inside, 180.0, 70.0) + noise).clamp(0, 255).to(torch.uint8)
    small = F.interpolate(inside[None, None].float(), (size[0] // 8, size[1] // 8), mode="area")[0, 0]
    soft, mask = along_superpixels(image, 0.1 + 0.8 * small, small > 0.5)
    steps = F.interpolate(small[None, None], size, mode="nearest")[0, 0] > 0.5
    assert (mask.shape, soft.shape, mask.dtype, soft.dtype) == (size, size, torch.bool, torch.float32)
    assert torch.equal(mask, soft > 0.5)
    assert (mask != inside).sum() < (steps != inside).sum() / 3


def test_nothing_or_all() -> None:
    image = torch.zeros(3, 50, 60, dtype=torch.uint8)
    for whole in (False, True):
        small = torch.full((10, 12), 0.9 if whole else 0.1)
        assert (along_superpixels(image, small, small > 0.5)[1] == whole).all()


def test_large_images_are_seen_at_a_bounded_size(model: SpitModel) -> None:
    image = torch.zeros(3, 700, 900, dtype=torch.uint8)
    image[:, 200:500, 300:600] = 200
    found = spit.segment(model, image)
    height, width = found.partition.blocks[0].shape[1:]
    assert height * width <= SEEN < 1.02 * height * width
    assert found.mask.shape == found.saliency.shape == (1, 700, 900)
    prediction = Predictor(model)(image, crop=False)
    assert prediction.sizes == [(700, 900)]
    assert prediction.images[0].shape[1:] == (height, width)
    assert Predictor(model)(image, crop=False, size=700).images[0].shape == image.shape
    assert shorter_side(image[:, :512, :512]) is None
