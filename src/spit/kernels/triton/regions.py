"""Regions of a partition in Triton: boxes, and the way up a hierarchy."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.triton.launch import BLOCK, blocks

STRIP = 16  # rows that a program walks down, keeping what it needs of the last two; a quarter in small batches
BUSY = 1024  # strips that keep a GPU busy


def region_boxes(labels: Tensor, offsets: Tensor, rows: int | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.region_boxes`."""
    labels = labels.contiguous()
    batch, height, width = labels.shape
    boxes = torch.zeros(int(offsets[-1]) if rows is None else rows, 4, dtype=torch.int32, device=labels.device)
    grid, strip = strips(batch, height, width)
    _boxes[grid](labels, offsets, boxes, height, width, **strip, num_warps=strip["BLOCK"] // 32 or 1)
    _flip[(blocks(len(boxes)),)](boxes, len(boxes), height, width, BLOCK)
    return boxes


def strips(batch: int, height: int, width: int) -> tuple[tuple[int, int, int], dict[str, int]]:
    """Programs that each walk down a strip, ROWS rows of BLOCK columns: their grid and these numbers."""
    block = min(BLOCK, max(int(triton.next_power_of_2(width)), 32))
    rows = STRIP if batch * blocks(height, STRIP) >= BUSY else STRIP // 4
    return (blocks(width, block), blocks(height, rows), batch), {"ROWS": rows, "BLOCK": block}


def owners(offsets: Tensor, total: int) -> Tensor:
    """The image of each region in packed order, ``(ΣN,)`` int32, for :func:`locate`; 0 for rows beyond the last."""
    owner = torch.zeros(total, dtype=torch.int32, device=offsets.device)
    _owners[(len(offsets) - 1,)](offsets, owner, BLOCK)
    return owner


@triton.jit
def _owners(offsets, owner, BLOCK: tl.constexpr):
    image = tl.program_id(0)
    end = tl.load(offsets + image + 1)
    for region in range(tl.load(offsets + image), end, BLOCK):
        i = region + tl.arange(0, BLOCK)
        tl.store(owner + i, tl.zeros_like(i).to(tl.int32) + image, i < end)


@triton.jit
def locate(owner, offsets, region):
    """The image of a region in packed order, and its label there."""
    image = tl.load(owner + region).to(tl.int64)
    return image, (region - tl.load(offsets + image)).to(tl.int32)


@triton.jit
def _boxes(labels, offsets, boxes, height, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Raise, for each region, how far its box is from the lower and from the upper end of the image.

    Only the ends of a run of one label can be extreme, and only those with another label above, or below, are the
    first, or the last, of a column. A bound only rises, so if even an outdated one holds, nothing is written.
    """
    image = tl.program_id(2).to(tl.int64)
    plane = labels + image * height * width
    boxes += tl.load(offsets + image) * 4
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * ROWS
    inside = x < width
    above = tl.load(plane + (first - 1) * width + x, inside & (first > 0), -1)
    label = tl.load(plane + first * width + x, inside, -1)
    for y in range(first, tl.minimum(first + ROWS, height)):
        row = plane + y * width + x
        below = tl.load(row + width, inside & (y + 1 < height), -1)
        begins = inside & (tl.load(row - 1, inside & (x > 0), -1) != label)
        ends = inside & (tl.load(row + 1, x + 1 < width, -1) != label)
        box = boxes + label * 4
        _raise(box, height - y, begins & (above != label))
        _raise(box + 1, width - x, begins)
        _raise(box + 2, y + 1, ends & (below != label))
        _raise(box + 3, x + 1, ends)
        above = label
        label = below


@triton.jit
def _raise(bound, value, mask):
    tl.atomic_max(bound, value, mask & (tl.load(bound, mask, 0) < value), sem="relaxed")


@triton.jit
def _flip(boxes, count, height, width, BLOCK: tl.constexpr):
    """From distances to the lower end to coordinates; an empty region's box stays (0, 0, 0, 0)."""
    region = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    box = boxes + region * 4
    full = (region < count) & (tl.load(box + 2, region < count, 0) > 0)
    tl.store(box, height - tl.load(box, full, 0), full)
    tl.store(box + 1, width - tl.load(box + 1, full, 0), full)


@triton.jit
def relabel(labels, up, new_labels, pixels, room, BLOCK: tl.constexpr):
    """The label of every pixel in the level above."""
    image = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(labels + image * pixels + i, i < pixels, 0)
    tl.store(new_labels + image * pixels + i, tl.load(up + image * room + label, i < pixels, 0), i < pixels)
