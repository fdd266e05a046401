"""Diffusion in Triton: several steps in one launch, in strips of every width."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from spit.kernels import SCALE, reference
from spit.kernels.preprocess import flux_table

Draw = Callable[..., Tensor]
FLUX = flux_table(torch.device("cpu"))


@pytest.mark.parametrize("width", [60, 100, 255, 300])
def test_wide_strips(gpu: Any, mixed: Draw, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """As in large batches: two, four or eight pixels to a lane."""
    monkeypatch.setattr(import_module("spit.kernels.triton.tiles"), "LARGE", 0)
    features = (mixed((1, 1, 5, width), -SCALE, SCALE) // 4).to(torch.int16)
    expected = reference.diffuse(features, FLUX, 4)
    assert not torch.equal(expected, features)
    assert torch.equal(gpu.diffuse(features, FLUX, 4), expected)


def test_strips_one_above_the_other(gpu: Any, mixed: Draw) -> None:
    """34 rows in strips of 8."""
    features = (mixed((1, 1, 34, 5), -SCALE, SCALE) // 4).to(torch.int16)
    assert torch.equal(gpu.diffuse(features, FLUX, 4), reference.diffuse(features, FLUX, 4))


@pytest.mark.parametrize("steps", [0, 1, 5, 9])
def test_more_or_fewer_steps_than_one_launch_takes(gpu: Any, mixed: Draw, steps: int) -> None:
    features = (mixed((1, 2, 3, 40), -SCALE, SCALE) // 4).to(torch.int16)
    assert torch.equal(gpu.diffuse(features, FLUX, steps), reference.diffuse(features, FLUX, steps))
