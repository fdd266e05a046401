"""Boundary refinement in Triton: ``reference.refine``, bit for bit.

The pixels of a class of the 2×2 colouring never see each other, so a launch moves them in place.
Region sums stand still during a launch: moves add to ``changes``, which ``_tabulate`` takes in.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.recording import replay
from spit.kernels.triton.launch import BLOCK, EXACT, blocks

CLASSES = ((0, 0), (0, 1), (1, 0), (1, 1))
PROGRAMS = 512
"""Programs that share the regions of a batch, whose number the host does not know."""


def refine(labels: Tensor, offsets: Tensor, pixels: Tensor, sweeps: int, least: int = 1,
           masked: bool = False) -> Tensor:
    """See :func:`spit.kernels.reference.refine`. Nothing waits for the device."""
    if least > 1 or masked:
        raise ValueError(f"expected least=1 and no mask on a GPU, got {least=} and {masked=}; the CPU has both")
    return replay(_refine, (labels, offsets, pixels), sweeps)[0]


def _refine(tensors: tuple[Tensor, ...], sweeps: int) -> tuple[Tensor, ...]:
    labels, offsets, pixels = tensors
    labels, pixels = labels.clone(memory_format=torch.contiguous_format), pixels.contiguous()
    batch, channels, height, width = pixels.shape
    words = channels + 1  # the sums of the channels, and the size
    capacity = batch * height * width
    exact_sums = torch.int32 if 255 * height * width < 2**31 else torch.int64
    sums = torch.zeros(capacity * words, dtype=exact_sums, device=labels.device)
    changes = torch.zeros_like(sums)
    regions = torch.empty(capacity * (channels + 2), dtype=torch.float32, device=labels.device)
    _add_pixels[(blocks(height * width), batch)](labels, offsets, pixels, changes, height * width, C=channels,
                                                 BLOCK=BLOCK)
    for _ in range(sweeps):
        for row, column in CLASSES:
            rows, columns = (height - row + 1) // 2, (width - column + 1) // 2
            _tabulate[(PROGRAMS,)](offsets, batch, sums, changes, regions, C=channels, BLOCK=BLOCK, **EXACT)
            if rows * columns > 0:
                _move[(blocks(rows * columns), batch)](labels, offsets, pixels, regions, changes, height, width, row,
                                                       column, rows, columns, C=channels, BLOCK=BLOCK, **EXACT)
    return (labels,)


@triton.jit
def _add_pixels(labels, offsets, pixels, changes, count, C: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    region = tl.load(labels + image * count + i, inside, 0) + tl.load(offsets + image)
    for c in tl.static_range(C + 1):
        value = tl.full((BLOCK,), 1, changes.dtype.element_ty)
        if c < C:
            value = tl.load(pixels + (image * C + c) * count + i, inside, 0).to(changes.dtype.element_ty)
        tl.atomic_add(changes + region * (C + 1) + c, value, inside, sem="relaxed")


@triton.jit
def _tabulate(offsets, batch, sums, changes, regions, C: tl.constexpr, BLOCK: tl.constexpr):
    """Take in the changes; μ_v, |v| / (|v| − 1) and |v| / (|v| + 1) of every region."""
    total = tl.load(offsets + batch)
    for start in range(tl.program_id(0) * BLOCK, total, tl.num_programs(0) * BLOCK):
        v = start + tl.arange(0, BLOCK).to(tl.int64)
        inside = v < total
        place = v * (C + 1) + C
        size = tl.load(sums + place, inside, 1) + tl.load(changes + place, inside, 0)
        tl.store(sums + place, size, inside)
        tl.store(changes + place, tl.zeros_like(size), inside)
        size = size.to(tl.float32)
        for c in tl.static_range(C):
            place = v * (C + 1) + c
            value = tl.load(sums + place, inside, 0) + tl.load(changes + place, inside, 0)
            tl.store(sums + place, value, inside)
            tl.store(changes + place, tl.zeros_like(value), inside)
            tl.store(regions + v * (C + 2) + c, tl.div_rn(value.to(tl.float32), size), inside)
        tl.store(regions + v * (C + 2) + C, tl.div_rn(size, tl.maximum(size - 1.0, 1.0)), inside)
        tl.store(regions + v * (C + 2) + C + 1, tl.div_rn(size, size + 1.0), inside)


@triton.jit
def _move(labels, offsets, pixels, regions, changes, height, width, row, column, rows, columns, C: tl.constexpr,
          BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    start = tl.load(offsets + image)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = row + 2 * (i // columns)
    x = column + 2 * (i % columns)
    inside = i < rows * columns
    at = labels + image * height * width + y * width + x
    own = tl.load(at, inside, 0)
    up, down, left, right = inside & (y > 0), inside & (y + 1 < height), inside & (x > 0), inside & (x + 1 < width)
    north, south = tl.load(at - width, up, -1), tl.load(at + width, down, -1)
    west, east = tl.load(at - 1, left, -1), tl.load(at + 1, right, -1)
    n, e, s, w = north == own, east == own, south == own, west == own
    bridges = ((n & e & (tl.load(at - width + 1, up & right, -1) == own)).to(tl.int32)
               + (e & s & (tl.load(at + width + 1, down & right, -1) == own)).to(tl.int32)
               + (s & w & (tl.load(at + width - 1, down & left, -1) == own)).to(tl.int32)
               + (w & n & (tl.load(at - width - 1, up & left, -1) == own)).to(tl.int32))
    sides = n.to(tl.int32) + e.to(tl.int32) + s.to(tl.int32) + w.to(tl.int32)
    free = inside & (sides - bridges == 1) & (sides < 4)  # _removable of the other backends
    plane = pixels + image * C * height * width + y * width + x
    mine = regions + (start + own) * (C + 2)
    best = _errors(plane, mine, mine + C, height * width, free, C)
    to = own
    best, to = _offer(north, own, start, plane, regions, height * width, free, best, to, C)
    best, to = _offer(west, own, start, plane, regions, height * width, free, best, to, C)
    best, to = _offer(east, own, start, plane, regions, height * width, free, best, to, C)
    best, to = _offer(south, own, start, plane, regions, height * width, free, best, to, C)
    moves = free & (to != own)
    tl.store(at, to, moves)
    for c in tl.static_range(C + 1):
        value = tl.full((BLOCK,), 1, changes.dtype.element_ty)
        if c < C:
            value = tl.load(plane + c * height * width, moves, 0).to(changes.dtype.element_ty)
        tl.atomic_add(changes + (start + own) * (C + 1) + c, -value, moves, sem="relaxed")
        tl.atomic_add(changes + (start + to) * (C + 1) + c, value, moves, sem="relaxed")


@triton.jit
def _offer(there, own, start, plane, regions, stride, free, best, to, C: tl.constexpr):
    other = free & (there != own) & (there >= 0)
    region = regions + (start + there) * (C + 2)
    error = _errors(plane, region, region + C + 1, stride, other, C)
    better = other & (error < best)
    return tl.where(better, error, best), tl.where(better, there, to)


@triton.jit
def _errors(plane, mean, factor, stride, mask, C: tl.constexpr):
    """factor_v · ‖x − μ_v‖²."""
    gap = tl.load(plane, mask, 0).to(tl.float32) - tl.load(mean, mask, 0.0)
    total = gap * gap
    for c in tl.static_range(1, C):
        gap = tl.load(plane + c * stride, mask, 0).to(tl.float32) - tl.load(mean + c, mask, 0.0)
        total = total + gap * gap
    return tl.load(factor, mask, 0.0) * total
