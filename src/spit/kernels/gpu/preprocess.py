"""Contrast and diffusion (App. B) in Triton; integers throughout."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.gpu.launch import BLOCK, blocks
from spit.kernels.rules import SCALE


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

    The flux must be odd in Δ, and 0 where |Δ| is a quarter of the range or more, like that of App. B.
    """
    batch, channels, height, width = features.shape
    source, target = features.contiguous(), torch.empty_like(features, memory_format=torch.contiguous_format)
    spare = torch.empty_like(target) if steps > 1 else target
    grid = (blocks(height * width), batch * channels)
    for _ in range(steps):
        _diffuse[grid](source, flux, target, height, width, SCALE, BLOCK)
        source, target, spare = target, spare, target
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
def _diffuse(source, flux, out, height, width, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(1).to(tl.int64) * height * width
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = i // width
    x = i % width
    inside = i < height * width
    here = tl.load(source + start + i, inside, 0).to(tl.int32)
    total = here
    total += _flow(source + start, flux, here, i - width, inside & (y > 0), SCALE)
    total += _flow(source + start, flux, here, i - 1, inside & (x > 0), SCALE)
    total += _flow(source + start, flux, here, i + 1, inside & (x + 1 < width), SCALE)
    total += _flow(source + start, flux, here, i + width, inside & (y + 1 < height), SCALE)
    total = tl.minimum(tl.maximum(total, -SCALE), SCALE)
    tl.store(out + start + i, total.to(tl.int16), inside)


@triton.jit
def _flow(plane, flux, here, there, exists, SCALE: tl.constexpr):
    """The flow over the edge to a neighbour; the table is odd, so both ends read the same number."""
    difference = tl.load(plane + there, exists, 0).to(tl.int32) - here
    # Beyond a quarter of the range the flux rounds to 0: those lanes need not read it.
    near = exists & (difference > -SCALE // 2) & (difference < SCALE // 2) & (difference != 0)
    return tl.load(flux + difference + 2 * SCALE, near, 0)
