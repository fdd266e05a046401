from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from spit.config import ModelConfig
from spit.model import SpitModel


@pytest.fixture(scope="session")
def small() -> Callable[..., SpitModel]:
    """``small("voronoi")``: a small model of random weights, far from uniform attention."""

    def make(tokenizer: str = "superpixel", classes: int = 5, depth: int = 2, seed: int = 0) -> SpitModel:
        torch.manual_seed(seed)
        options = {"patch": {"size": 8}, "superpixel": {"levels": 3}, "voronoi": {"cells": 12}}[tokenizer]
        config = ModelConfig(tokenizer=tokenizer, tokenizer_options=options, resolution=4, position_bins=4,
                             gradients=False, width=24, depth=depth, heads=3, layer_scale=None, num_classes=classes)
        model = SpitModel(config).eval()
        for parameter in model.parameters():
            if parameter.ndim == 2:
                torch.nn.init.normal_(parameter, std=0.3)
        return model

    return make


@pytest.fixture
def images(photo: Callable[[str, int], Tensor]) -> Tensor:
    """Three photos, ``(3, 3, 40, 40)`` uint8."""
    return torch.stack([photo(name, 40) for name in ("astronaut", "coffee", "chelsea")])
