"""Contrast and diffusion (App. B) in Triton; integers throughout."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.rules import SCALE
from spit.kernels.triton.launch import BLOCK, blocks
from spit.kernels.triton.tiles import LANES, cut, east, strip_at, west

TOGETHER = 4
"""Diffusion steps of one launch: as many as τ takes. The halo of a strip grows with them."""
ROWS = 128
"""Rows of a strip in large batches."""


def look_up(images: Tensor, table: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.look_up`."""
    images = images.contiguous()
    batch, channels, height, width = images.shape
    out = torch.empty(images.shape, dtype=table.dtype, device=images.device)
    pixels = height * width
    _look_up[(blocks(pixels), batch * channels)](images, table, out, pixels, channels, BLOCK)
    return out


def diffuse(features: Tensor, flux: Tensor, steps: int) -> Tensor:
    """See :func:`spit.kernels.reference.diffuse`.

    The flux must be odd in Δ, like that of App. B.
    """
    batch, channels, height, width = features.shape
    source = features.contiguous()
    for done in range(0, steps, TOGETHER):
        target = torch.empty_like(source)
        some = min(TOGETHER, steps - done)
        strips = cut(width, some, features.numel(), ROWS)
        _diffuse[strips.grid(height, batch * channels)](
            source, flux, target, height, width, strips.abreast, STEPS=some, SCALE=SCALE, COLUMNS=strips.columns,
            ROWS=strips.rows, LANES=LANES, num_warps=1)
        source = target
    return source


@triton.jit
def _look_up(images, table, out, pixels, channels, BLOCK: tl.constexpr):
    plane = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    value = tl.load(images + plane * pixels + i, inside, 0).to(tl.int32)
    curve = tl.load(table + (plane % channels) * 256 + value, inside, 0)
    tl.store(out + plane * pixels + i, curve, inside)


@triton.jit
def _diffuse(source, flux, out, height, width, strips, STEPS: tl.constexpr, SCALE: tl.constexpr,
             COLUMNS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr):
    """STEPS steps at once: a row that comes in lets the row above it take the first step, and so on.

    Row y − s takes step s + 1. The halo is as wide as there are steps; what is wrong at its edge stays in it.
    """
    x, own, top, bottom = strip_at(height, width, strips, STEPS, COLUMNS, ROWS, LANES)
    start = tl.program_id(1).to(tl.int64) * height * width
    inside = x < width
    to_east = (x + 1 - width) >> 31  # all bits, or none: a GPU has room for few masks
    to_west = -x >> 31
    flux += 2 * SCALE
    rows = tl.tuple([])  # the last row that took s steps, and the flow into it from the north
    norths = tl.tuple([])
    for _ in tl.static_range(STEPS):
        rows += (tl.zeros((LANES, COLUMNS), tl.int32),)
        norths += (tl.zeros((LANES, COLUMNS), tl.int32),)
    ahead = tl.load(source + start + (top - STEPS) * width + x, inside & (top >= STEPS), 0)
    for y in range(top - STEPS, bottom + STEPS):
        row = ahead.to(tl.int32)
        ahead = tl.load(source + start + (y + 1) * width + x, inside & (y + 1 >= 0) & (y + 1 < height), 0)
        next_rows = tl.tuple([])
        next_norths = tl.tuple([])
        for step in tl.static_range(STEPS):
            here = rows[step]
            to_south = (step - y >> 31) & (y - step - height >> 31)
            south = tl.load(flux + ((row - here) & to_south))  # over an edge of the grid that there is not, flux of 0
            after = tl.load(flux + ((east(here, LANES, COLUMNS) - here) & to_east))
            before = west(after, LANES, COLUMNS) & to_west
            next_rows += (row,)
            next_norths += (south,)
            row = tl.minimum(tl.maximum(here + south - norths[step] + after - before, -SCALE), SCALE)
        rows = next_rows
        norths = next_norths
        tl.store(out + start + (y - STEPS) * width + x, row.to(tl.int16), own & (y - STEPS >= top))
