"""Voronoi cells in Triton: buckets of sites, searched in rings around each bucket of pixels."""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.reference.voronoi import settle

FAR = tl.constexpr(2**31 - 1)


def nearest_sites(sites: Tensor, height: int, width: int) -> Tensor:
    """See :func:`spit.kernels.reference.nearest_sites`."""
    batch, count, _ = sites.shape
    side = min(max(math.isqrt(height * width // count), 4), 32)
    rows, columns = triton.cdiv(height, side), triton.cdiv(width, side)
    bucket = sites[..., 0].long() // side * columns + sites[..., 1] // side  # (B, N)
    ordered, members = bucket.sort(dim=1, stable=True)
    ends = torch.searchsorted(ordered, torch.arange(rows * columns + 1, device=sites.device).repeat(batch, 1)).int()
    labels = torch.empty(batch, height, width, dtype=torch.int32, device=sites.device)
    _nearest[(rows * columns, batch)](sites.contiguous(), members.int(), ends, labels, count, height, width, rows,
                                      columns, SIDE=side, BLOCK=triton.next_power_of_2(side * side))
    return settle(sites, labels)


@triton.jit
def _nearest(sites, members, ends, labels, count, height, width, rows, columns, SIDE: tl.constexpr,
             BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) // columns
    column = tl.program_id(0) % columns
    i = tl.arange(0, BLOCK)
    y = row * SIDE + i // SIDE
    x = column * SIDE + i % SIDE
    inside = (i < SIDE * SIDE) & (y < height) & (x < width)
    starts = ends + image * (rows * columns + 1)
    best = tl.full((BLOCK,), FAR, tl.int32)
    label = tl.full((BLOCK,), FAR, tl.int32)
    ring = 0
    open_lanes = 1
    while open_lanes > 0:
        for a in range(tl.maximum(row - ring, 0), tl.minimum(row + ring, rows - 1) + 1):
            # Only the rim is new: all columns in its first and last row, two in the others.
            rim = (a == row - ring) | (a == row + ring)
            step = tl.where(rim | (ring == 0), 1, 2 * ring)
            for b in range(column - ring, column + ring + 1, step):
                if (b >= 0) & (b < columns):
                    bucket = a * columns + b
                    for k in range(tl.load(starts + bucket), tl.load(starts + bucket + 1)):
                        n = tl.load(members + image * count + k)
                        dy = y - tl.load(sites + (image * count + n) * 2)
                        dx = x - tl.load(sites + (image * count + n) * 2 + 1)
                        distance = dy * dy + dx * dx
                        closer = (distance < best) | ((distance == best) & (n < label))
                        best = tl.where(closer, distance, best)
                        label = tl.where(closer, n, label)
        # How near a site outside the searched square can be.
        reach = tl.minimum(tl.minimum(y - (row - ring) * SIDE + 1, (row + ring + 1) * SIDE - y),
                           tl.minimum(x - (column - ring) * SIDE + 1, (column + ring + 1) * SIDE - x))
        open_lanes = tl.max((inside & (best >= reach * reach)).to(tl.int32), 0)
        open_lanes = tl.where(ring > tl.maximum(rows, columns), 0, open_lanes)
        ring += 1
    tl.store(labels + image * height * width + y * width + x, label, inside)
