from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spit.kernels import SCALE, reference
from spit.kernels import tensors as numba
from spit.kernels.preprocess import flux_table

Texture = Callable[[int, tuple[int, ...], int, int], Tensor]
Draw = Callable[..., Tensor]
SHAPES = [(1, 1, 1, 1), (2, 2, 1, 7), (2, 4, 7, 1), (3, 3, 9, 13), (1, 5, 24, 23)]

shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 14), st.integers(1, 14))


def paper_flux() -> Tensor:
    """γ · exp(−(Δ/κ)²) · Δ with κ = 0.1 and γ = 0.5."""
    gap = torch.arange(-2 * SCALE, 2 * SCALE + 1).double() / SCALE
    return (0.5 * torch.exp(-((gap / 0.1) ** 2)) * gap * SCALE).round().int()


def random_flux(seed: int) -> Tensor:
    """Not the paper's: any function of the difference, so that an index off by one shows."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-SCALE, SCALE + 1, (4 * SCALE + 1,), generator=generator, dtype=torch.int32)


def odd_flux() -> Tensor:
    """Not the paper's: noise below half the range, so that an index off by one shows."""
    half = torch.randint(-300, 301, (SCALE // 2 - 1,), generator=torch.Generator().manual_seed(0))
    rest = torch.zeros(2 * SCALE - len(half), dtype=torch.int64)
    return torch.cat([rest, -half.flip(0), torch.zeros(1, dtype=torch.int64), half, rest]).int()


def diffuse_pixel_by_pixel(plane: list[list[int]], flux: list[int], steps: int) -> list[list[int]]:
    height, width = len(plane), len(plane[0])
    for _ in range(steps):
        moved = [row[:] for row in plane]
        for y in range(height):
            for x in range(width):
                for to_y, to_x in ((y + 1, x), (y, x + 1)):
                    if to_y < height and to_x < width:
                        flow = flux[plane[to_y][to_x] - plane[y][x] + 2 * SCALE]
                        moved[y][x] += flow
                        moved[to_y][to_x] -= flow
        plane = [[min(max(value, -SCALE), SCALE) for value in row] for row in moved]
    return plane


class TestContrast:
    @settings(deadline=None, max_examples=60)
    @given(seed=st.integers(0, 10_000), shape=shapes)
    def test_parity(self, texture: Texture, seed: int, shape: tuple[int, ...]) -> None:
        images = texture(seed, shape, 0, 255).to(torch.uint8)
        table = torch.randint(-SCALE, SCALE + 1, (shape[1], 256), dtype=torch.int16,
                              generator=torch.Generator().manual_seed(seed))
        expected = reference.look_up(images, table)
        got = numba.look_up(images, table)
        assert got.dtype == expected.dtype == torch.int16
        assert torch.equal(got, expected)

    def test_each_channel_has_its_own_curve(self, backend: Any) -> None:
        table = torch.stack([torch.arange(256), 1000 - torch.arange(256)]).to(torch.int16)
        images = torch.tensor([[[[0, 255]], [[0, 255]]]], dtype=torch.uint8)
        assert backend.look_up(images, table).tolist() == [[[[0, 255]], [[1000, 745]]]]


class TestDiffuse:
    @settings(deadline=None, max_examples=80)
    @given(seed=st.integers(0, 10_000), shape=shapes, steps=st.integers(0, 5), real=st.booleans())
    def test_parity(self, texture: Texture, seed: int, shape: tuple[int, ...], steps: int, real: bool) -> None:
        features = texture(seed, shape, -SCALE, SCALE).to(torch.int16)
        before = features.clone()
        flux = paper_flux() if real else random_flux(seed)
        expected = reference.diffuse(features, flux, steps)
        got = numba.diffuse(features, flux, steps)
        assert got.dtype == expected.dtype == torch.int16
        assert torch.equal(got, expected)
        assert torch.equal(features, before)

    @settings(deadline=None, max_examples=30)
    @given(seed=st.integers(0, 10_000), height=st.integers(1, 7), width=st.integers(1, 7), steps=st.integers(0, 3))
    def test_equals_a_loop_over_pixels(self, texture: Texture, seed: int, height: int, width: int, steps: int) -> None:
        features = texture(seed, (1, 1, height, width), -SCALE, SCALE).to(torch.int16)
        flux = random_flux(seed)
        expected = diffuse_pixel_by_pixel(features[0, 0].tolist(), flux.tolist(), steps)
        assert numba.diffuse(features, flux, steps)[0, 0].tolist() == expected

    @pytest.mark.parametrize("layout", ["channels_last", "slice", "expand", "transpose"])
    def test_any_layout(self, backend: Any, layout: str) -> None:
        base = torch.randint(-SCALE, SCALE, (2, 3, 12, 10), dtype=torch.int16,
                             generator=torch.Generator().manual_seed(0))
        strided = {
            "channels_last": lambda: base.to(memory_format=torch.channels_last),
            "slice": lambda: base[::1, 1:, ::2, 1::3],
            "expand": lambda: base[:1, :1].expand(2, 3, -1, -1),
            "transpose": lambda: base.mT,
        }[layout]()
        flux = odd_flux()
        assert torch.equal(backend.diffuse(strided, flux, 2), backend.diffuse(strided.clone().contiguous(), flux, 2))
        assert torch.equal(backend.diffuse(strided, flux, 0), strided)
        images, table = strided.to(torch.uint8), torch.arange(3 * 256).view(3, 256)[: strided.shape[1]].to(torch.int16)
        assert torch.equal(backend.look_up(images, table), backend.look_up(images.clone().contiguous(), table))


class TestSaturate:
    @pytest.mark.parametrize(("color", "push", "expected"), [
        ((1000, 1000, 1000), 2.0, (1000, 1000, 1000)),  # grey has no saturation to push
        ((1000, 0, 0), 1.0, (1000, 0, 0)),
        ((1000, 0, 0), 2.0, (1701, -299, -299)),  # the luma is 299
        ((2000, 0, 0), 3.0, (SCALE, -1196, -1196)),  # 598 + 3 · 1402 is beyond 1
    ])
    def test_by_hand(self, backend: Any, color: tuple[int, ...], push: float, expected: tuple[int, ...]) -> None:
        pixel = torch.tensor(color, dtype=torch.int16).view(1, 3, 1, 1)
        assert backend.saturate(pixel, round(push * 4096)).flatten().tolist() == list(expected)

    @settings(deadline=None, max_examples=60)
    @given(seed=st.integers(0, 100_000), batch=st.integers(1, 3), height=st.integers(1, 9), width=st.integers(1, 9),
           push=st.integers(0, 4 * 4096))
    def test_parity(self, texture: Texture, seed: int, batch: int, height: int, width: int, push: int) -> None:
        features = texture(seed, (batch, 3, height, width), -SCALE, SCALE).to(torch.int16)
        before = features.clone()
        assert torch.equal(numba.saturate(features, push), reference.saturate(features, push))
        assert torch.equal(features, before)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.int16, torch.float32])
def test_look_up_in_triton(gpu: Any, mixed: Draw, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    images = mixed(shape, 0, 255).to(torch.uint8)
    table = torch.randn(shape[1], 256, generator=torch.Generator().manual_seed(0)).mul(SCALE / 4).to(dtype)
    got = gpu.look_up(images, table)
    assert got.dtype == dtype
    assert torch.equal(got, reference.look_up(images, table))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("real", [True, False])
def test_diffuse_in_triton(gpu: Any, mixed: Draw, shape: tuple[int, ...], real: bool) -> None:
    features = (mixed(shape, -SCALE, SCALE) // (1 if real else 2)).to(torch.int16)
    before, flux = features.clone(), paper_flux() if real else odd_flux()
    for steps in (0, 1, 4):
        got = gpu.diffuse(features, flux, steps)
        assert got.dtype == torch.int16
        assert torch.equal(got, reference.diffuse(features, flux, steps)), steps
    assert torch.equal(features, before)


def test_diffusion_is_clipped(compiled: Any) -> None:
    """A checkerboard that every step overshoots."""
    y, x = torch.meshgrid(torch.arange(8), torch.arange(6), indexing="ij")
    features = torch.where((y + x) % 2 == 0, SCALE, SCALE - 500)[None, None].to(torch.int16)
    flux = 2 * torch.arange(-2 * SCALE, 2 * SCALE + 1, dtype=torch.int32)
    flux[: SCALE * 3 // 2 + 1] = flux[SCALE * 5 // 2 :] = 0
    got = compiled.diffuse(features, flux, 3)
    assert got.max() == SCALE
    assert torch.equal(got, reference.diffuse(features, flux, 3))


def test_the_paper_flux_is_what_the_kernel_takes_it_for() -> None:
    """It reads no flux where Δ is 0 or half the range away, and one number for both ends of an edge."""
    flux = flux_table(torch.device("cpu"))
    assert torch.equal(flux, paper_flux())
    gap = torch.arange(-2 * SCALE, 2 * SCALE + 1)
    assert not flux[(gap.abs() >= SCALE // 2) | (gap == 0)].any()
    assert torch.equal(flux, -flux.flip(0))


@pytest.mark.usefixtures("small_blocks")
def test_many_blocks_in_triton(gpu: Any, mixed: Draw) -> None:
    features, flux = mixed((2, 2, 7, 9), -SCALE, SCALE).to(torch.int16), paper_flux()
    assert torch.equal(gpu.diffuse(features, flux, 2), reference.diffuse(features, flux, 2))
