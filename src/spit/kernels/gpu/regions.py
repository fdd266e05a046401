"""Regions of a partition in Triton: boxes, and the way up a hierarchy."""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.gpu.launch import BLOCK, blocks


def region_boxes(labels: Tensor, offsets: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.region_boxes`."""
    labels = labels.contiguous()
    _, height, width = labels.shape
    boxes = torch.zeros(int(offsets[-1]), 4, dtype=torch.int32, device=labels.device)
    boxes[:, :2] = height + width
    _boxes[(blocks(height * width), len(labels))](labels, offsets, boxes, height * width, width, BLOCK)
    empty = boxes[:, 2:3] == 0
    return boxes.masked_fill_(empty, 0)


def compose(parents: Sequence[Tensor], offsets: Sequence[Tensor]) -> Tensor:
    """See :func:`spit.kernels.reference.compose`."""
    labels = parents[-1]
    for lower, below, above in reversed(list(zip(parents[:-1], offsets[:-2], offsets[1:-1], strict=True))):
        answer = torch.empty_like(lower)
        batch = len(below) - 1
        programs = max(blocks(len(lower)) // batch, 1)
        _compose[(programs, batch)](lower, labels, below, above, answer, BLOCK)
        labels = answer
    return labels


@triton.jit
def _boxes(labels, offsets, boxes, pixels, width, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    plane = labels + image * pixels
    label = tl.load(plane + i, inside, 0)
    box = boxes + (label + tl.load(offsets + image)) * 4
    y = i // width
    x = i % width
    # Only pixels at a region's border can be extreme. A bound only moves outwards, so if even an outdated one
    # holds, nothing needs to be written.
    north = inside & ((y == 0) | (tl.load(plane + i - width, inside & (y > 0), -1) != label))
    west = inside & ((x == 0) | (tl.load(plane + i - 1, inside & (x > 0), -1) != label))
    east = inside & ((x + 1 == width) | (tl.load(plane + i + 1, inside & (x + 1 < width), -1) != label))
    south = inside & ((i + width >= pixels) | (tl.load(plane + i + width, inside & (i + width < pixels), -1) != label))
    tl.atomic_min(box, y, north & (tl.load(box, north, 0) > y), sem="relaxed")
    tl.atomic_min(box + 1, x, west & (tl.load(box + 1, west, 0) > x), sem="relaxed")
    tl.atomic_max(box + 2, y + 1, south & (tl.load(box + 2, south, 0) < y + 1), sem="relaxed")
    tl.atomic_max(box + 3, x + 1, east & (tl.load(box + 3, east, 0) < x + 1), sem="relaxed")


@triton.jit
def _compose(lower, upper, below, above, out, BLOCK: tl.constexpr):
    image = tl.program_id(1)
    first = tl.load(below + image)
    last = tl.load(below + image + 1)
    start = tl.load(above + image)
    for chunk in range(first + tl.program_id(0) * BLOCK, last, tl.num_programs(0) * BLOCK):
        v = chunk + tl.arange(0, BLOCK)
        inside = v < last
        tl.store(out + v, tl.load(upper + start + tl.load(lower + v, inside, 0), inside, 0), inside)
