"""Voronoi cells in Triton: buckets of sites, searched in rings around each bucket of pixels."""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

FAR = tl.constexpr(2**31 - 1)
ENCLOSED = 2**63 - 1


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


def settle(sites: Tensor, labels: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.voronoi.settle`; only pixels that are cut off are looked at.

    Shape:
        sites ``(B, N, 2)`` and labels ``(B, H, W)`` of the nearest sites to labels ``(B, H, W)``.
    """
    wide = pad(labels, (1, 1, 1, 1), value=-1)  # a rim outside all cells, so that the image has no borders to check
    height, width = wide.shape[1:]
    cell, loose = wide.view(-1), pad(_stuck(sites, wide), (1, 1, 1, 1)).view(-1)
    known = 0
    while len(places := loose.nonzero()[:, 0]) > known:  # the stuck pixels, then what is connected to them
        known = len(places)
        near = _neighbors(places, width)
        loose[torch.where(cell[near] == cell[places, None], near, places[:, None])] = True
    while len(places) > 0:
        near = _neighbors(places, width)  # (L, 4)
        owner = cell[near].long()
        rows, x = places // width, places % width - 1
        image, y = rows // height, rows % height - 1
        site = sites[image[:, None], owner].long()
        distance = (y[:, None] - site[..., 0]) ** 2 + (x[:, None] - site[..., 1]) ** 2
        rank = distance * sites.shape[1] + owner  # the nearest, ties to the smallest number
        rank = rank.masked_fill(loose[near] | (owner < 0), ENCLOSED).amin(1)
        enclosed = rank == ENCLOSED
        cell[places] = torch.where(enclosed, cell[places], (rank % sites.shape[1]).to(cell.dtype))
        loose[places] = enclosed
        places = places[enclosed]
    return wide[:, 1:-1, 1:-1].contiguous()


def _stuck(sites: Tensor, wide: Tensor) -> Tensor:
    """Pixels with no neighbour in their cell that is nearer to the site by a row or a column.

    Cells are convex, so a pixel with a path to its site has such a neighbour, and in a piece that is cut
    off the pixel with the fewest rows and columns to the site has none. The pieces are grown from these
    few pixels, which is cheaper than a flood of all others.
    """
    labels = wide[:, 1:-1, 1:-1]
    own = labels.flatten(1).long()
    y, x = (torch.arange(side, device=sites.device, dtype=sites.dtype) for side in labels.shape[1:])
    dy = y[:, None] - sites[..., 0].gather(1, own).view(labels.shape)
    dx = x - sites[..., 1].gather(1, own).view(labels.shape)
    vertical = torch.where(dy > 0, wide[:, :-2, 1:-1], wide[:, 2:, 1:-1])
    horizontal = torch.where(dx > 0, wide[:, 1:-1, :-2], wide[:, 1:-1, 2:])
    return (dy != 0) & (dx != 0) & (vertical != labels) & (horizontal != labels)


def _neighbors(places: Tensor, stride: int) -> Tensor:
    return torch.stack([places - stride, places - 1, places + 1, places + stride], dim=1)


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
