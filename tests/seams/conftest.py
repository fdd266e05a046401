"""Backbones with weights that hide nothing: positions, scales and biases all matter."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from spit.partition import Partition


@pytest.fixture(scope="session")
def randomised() -> Callable[[nn.Module], nn.Module]:
    """``randomised(module)``: the module in evaluation mode, with larger random weights."""

    def draw(module: nn.Module) -> nn.Module:
        random = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                noise = torch.randn(parameter.shape, generator=random)
                if name.endswith(("gamma", "gamma_1", "gamma_2", "lambda1")):  # LayerScale, nearly 0 in new models
                    parameter.copy_(0.5 + 0.1 * noise)
                else:
                    parameter.add_(0.05 * noise)
        return module.eval()

    return draw


@pytest.fixture(scope="session")
def shuffled_squares() -> Callable[[int, int, int], Partition]:
    """``shuffled_squares(height, width, side)``: square patches, numbered in another order."""

    def make(height: int, width: int, side: int) -> Partition:
        rows, columns = height // side, width // side
        order = torch.randperm(rows * columns, generator=torch.Generator().manual_seed(1)).view(rows, columns)
        return Partition.from_labels(order.repeat_interleave(side, 0).repeat_interleave(side, 1))

    return make


@pytest.fixture(scope="session")
def photos() -> Callable[..., list[Tensor]]:
    """``photos((96, 128), (80, 64))``: random images of these sizes."""

    def make(*sizes: tuple[int, int], channels: int = 3) -> list[Tensor]:
        random = torch.Generator().manual_seed(2)
        return [torch.rand(channels, *size, generator=random) for size in sizes]

    return make
