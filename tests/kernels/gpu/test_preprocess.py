from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spit.kernels import SCALE, reference
from spit.tokenizers.preprocess import _flux_table

SHAPES = [(1, 1, 1, 1), (2, 2, 1, 7), (2, 4, 7, 1), (3, 3, 9, 13), (1, 5, 24, 23)]
Draw = Callable[..., Tensor]


def odd_flux() -> Tensor:
    """Not the paper's: noise below half the range, so that an index off by one shows."""
    half = torch.randint(-300, 301, (SCALE // 2 - 1,), generator=torch.Generator().manual_seed(0))
    rest = torch.zeros(2 * SCALE - len(half), dtype=torch.int64)
    return torch.cat([rest, -half.flip(0), torch.zeros(1, dtype=torch.int64), half, rest]).int()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.int16, torch.float32])
def test_look_up(gpu: Any, mixed: Draw, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    images = mixed(shape, 0, 255).to(torch.uint8)
    table = torch.randn(shape[1], 256, generator=torch.Generator().manual_seed(0)).mul(SCALE / 4).to(dtype)
    got = gpu.look_up(images, table)
    assert got.dtype == dtype
    assert torch.equal(got, reference.look_up(images, table))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("real", [True, False])
def test_diffuse(gpu: Any, mixed: Draw, shape: tuple[int, ...], real: bool) -> None:
    features = (mixed(shape, -SCALE, SCALE) // (1 if real else 2)).to(torch.int16)
    before, flux = features.clone(), _flux_table(torch.device("cpu")) if real else odd_flux()
    for steps in (0, 1, 4):
        got = gpu.diffuse(features, flux, steps)
        assert got.dtype == torch.int16
        assert torch.equal(got, reference.diffuse(features, flux, steps)), steps
    assert torch.equal(features, before)


def test_diffusion_is_clipped(gpu: Any) -> None:
    """A checkerboard that every step overshoots."""
    y, x = torch.meshgrid(torch.arange(8), torch.arange(6), indexing="ij")
    features = torch.where((y + x) % 2 == 0, SCALE, SCALE - 500)[None, None].to(torch.int16)
    flux = 2 * torch.arange(-2 * SCALE, 2 * SCALE + 1, dtype=torch.int32)
    flux[: SCALE * 3 // 2 + 1] = flux[SCALE * 5 // 2 :] = 0
    got = gpu.diffuse(features, flux, 3)
    assert got.max() == SCALE
    assert torch.equal(got, reference.diffuse(features, flux, 3))


def test_the_paper_flux_is_what_the_kernel_takes_it_for() -> None:
    """It reads no flux where Δ is 0 or half the range away, and one number for both ends of an edge."""
    flux = _flux_table(torch.device("cpu"))
    gap = torch.arange(-2 * SCALE, 2 * SCALE + 1)
    assert not flux[(gap.abs() >= SCALE // 2) | (gap == 0)].any()
    assert torch.equal(flux, -flux.flip(0))


@pytest.mark.parametrize("layout", ["channels_last", "slice", "expand", "transpose"])
def test_any_layout(gpu: Any, mixed: Draw, layout: str) -> None:
    base = mixed((2, 3, 12, 10), 0, 255)
    strided = {
        "channels_last": lambda: base.to(memory_format=torch.channels_last),
        "slice": lambda: base[:, 1:, ::2, 1::3],
        "expand": lambda: base[:1, :1].expand(2, 3, -1, -1),
        "transpose": lambda: base.mT,
    }[layout]()
    table = torch.arange(3 * 256).view(3, 256)[: strided.shape[1]].to(torch.int16)
    images, features, flux = strided.to(torch.uint8), strided.to(torch.int16), odd_flux()
    assert torch.equal(gpu.look_up(images, table), reference.look_up(images, table))
    assert torch.equal(gpu.diffuse(features, flux, 2), reference.diffuse(features, flux, 2))
    assert torch.equal(gpu.diffuse(features, flux, 0), features)


@pytest.mark.usefixtures("small_blocks")
def test_many_blocks(gpu: Any, mixed: Draw) -> None:
    features, flux = mixed((2, 2, 7, 9), -SCALE, SCALE).to(torch.int16), _flux_table(torch.device("cpu"))
    assert torch.equal(gpu.diffuse(features, flux, 2), reference.diffuse(features, flux, 2))
