"""Strips: every pixel of a row is answered for once, and its neighbours come from the row itself."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from kernels.conftest import DEVICE

triton = pytest.importorskip("triton", reason="no triton: pip install 'spit-vit[gpu]'")
tl = pytest.importorskip("triton.language")

from spit.kernels.triton.tiles import LANES, cut, east, west  # noqa: E402


@given(st.integers(1, 3000), st.integers(1, 4), st.sampled_from([1, 2**22]))
def test_strips_cover_a_row_and_their_halos_suffice(width: int, halo: int, numbers: int) -> None:
    columns, abreast, rows = cut(width, halo, numbers, 64)
    assert 0 < rows <= 64
    reach, next_end = LANES * columns, 0
    for strip in range(abreast):  # as strip_at has it
        first = strip * (reach - 2 * halo)
        left = 0 if strip == 0 else first + halo
        right = width if strip == abreast - 1 else min(first + reach - halo, width)
        assert left == next_end
        assert left - halo >= first or first == 0
        assert right + halo <= first + reach or right == width
        assert right <= first + reach
        next_end = right
    assert next_end == width


def test_small_batches_get_narrow_and_short_strips() -> None:
    assert cut(256, 4, 3 * 256 * 256, 128) == (2, 5, 8)
    assert cut(256, 1, 3 * 256 * 256, 32) == (1, 9, 4)
    assert cut(256, 4, 16 * 3 * 256 * 256, 128) == (2, 5, 32)
    assert cut(256, 4, 64 * 3 * 256 * 256, 128) == (8, 1, 32)
    assert cut(256, 4, 256 * 3 * 256 * 256, 128) == (8, 1, 128)
    assert cut(481, 4, 128 * 3 * 321 * 481, 128).columns == 8
    assert cut(321, 4, 128 * 3 * 321 * 481, 128).columns < 8  # two strips of 256 would be half empty


@triton.jit
def neighbors(source, to_east, to_west, LANES: tl.constexpr, COLUMNS: tl.constexpr):
    x = COLUMNS * tl.arange(0, LANES)[:, None] + tl.arange(0, COLUMNS)[None, :]
    row = tl.load(source + x)
    tl.store(to_east + x, east(row, LANES, COLUMNS))
    tl.store(to_west + x, west(row, LANES, COLUMNS))


@pytest.mark.parametrize("columns", [1, 2, 4, 8])
def test_neighbors(columns: int) -> None:
    row: Tensor = torch.randint(1000, (LANES * columns,), device=DEVICE, dtype=torch.int32)
    to_east, to_west = torch.empty_like(row), torch.empty_like(row)
    neighbors[(1,)](row, to_east, to_west, LANES=LANES, COLUMNS=columns, num_warps=1)
    assert torch.equal(to_east[:-1], row[1:])
    assert torch.equal(to_west[1:], row[:-1])
