"""A small model with random weights, and pictures of one object."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from spit.config import ModelConfig
from spit.model import SpitModel


@pytest.fixture(scope="session")
def model() -> SpitModel:
    torch.manual_seed(0)
    return SpitModel(ModelConfig(
        tokenizer_options={"levels": 2}, resolution=4, position_bins=4, gradients=False, width=32, depth=3, heads=2,
        layer_scale=None, num_classes=4)).eval()


@pytest.fixture(scope="session")
def scene() -> Callable[..., Tensor]:
    """``scene(height, width, seed)``: a bright disc on a dark ground with a little noise, (3, H, W) uint8."""

    def draw(height: int = 40, width: int = 48, seed: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        disc = (y - height // 2) ** 2 + (x - width // 2) ** 2 < (min(height, width) // 3) ** 2
        bright, dark = (torch.tensor(color)[:, None, None] for color in ((220, 160, 40), (30, 60, 90)))
        image = torch.where(disc, bright, dark)
        return (image + torch.randint(-9, 10, image.shape, generator=generator)).clamp(0, 255).to(torch.uint8)

    return draw
