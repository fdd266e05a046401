"""Boundary refinement: pixels at a boundary move to a neighbouring region where that lowers the squared error.

Not in the paper; similar to SEEDS and ETPS. Each sweep visits the four classes of a 2×2 colouring of the
grid in turn. No two pixels of a class touch, not even at a corner, so all of them decide at once from the
regions before the class: neither the order of visits nor the number of threads matters.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.kernels.portable import running_sum

CLASSES = ((0, 0), (0, 1), (1, 0), (1, 1))
RING = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
"""The eight neighbours in turn: sides at even places, the corners between them at odd ones."""
NORTH, EAST, SOUTH, WEST = 0, 2, 4, 6


def refine(labels: Tensor, offsets: Tensor, pixels: Tensor, sweeps: int, least: int = 1,
           masked: bool = False) -> Tensor:
    """Move boundary pixels in ``sweeps`` sweeps.

    A pixel x of region u may move to the region v of one of its four neighbours. The squared error
    changes by |v| / (|v| + 1) · ‖x − μ_v‖² − |u| / (|u| − 1) · ‖x − μ_u‖². The pixel takes the smallest
    change below 0; ties go to the first of north, west, east and south. A pixel moves only if its region
    stays connected without it: the sides of x in u must be connected in u within the ring of eight
    neighbours. So regions stay 4-connected, and none disappears.

    Of the pixels of u that would move in one visit of a class, the first in raster order do, as many as u had pixels
    above ``least`` before the visit; least = 1 never holds one back. Where ``masked``, pixels with the label −1 are
    nobody's: they stay, and no other becomes like them.

    Shape:
        labels ``(B, H, W)`` int32, offsets ``(B + 1,)`` int64, pixels ``(B, C, H, W)`` uint8 or int16 to new labels
        ``(B, H, W)`` int32.
    """
    counts = offsets.diff().tolist()
    return torch.stack([_refine_image(*image, sweeps, least) for image in zip(labels, counts, pixels, strict=True)])


def _refine_image(labels: Tensor, count: int, pixels: Tensor, sweeps: int, least: int) -> Tensor:
    height, width = labels.shape
    padded = F.pad(labels.long(), (1, 1, 1, 1), value=-1)  # −1 is nobody's region
    here = padded[1:-1, 1:-1]
    colors = pixels.permute(1, 2, 0).float()  # (H, W, C)
    for _ in range(sweeps):
        for row, column in CLASSES:
            visited = (slice(row, None, 2), slice(column, None, 2))
            x, own = colors[visited], here[visited]
            ring = torch.stack([padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width][visited] for dy, dx in RING])
            means, leave, join, sizes = _tabulate(here, colors, count)
            best, to = _errors(x, own, means, leave), own
            free = _removable(ring == own) & (own >= 0)
            for side in (NORTH, WEST, EAST, SOUTH):
                there = ring[side]
                error = _errors(x, there, means, join)
                better = free & (there != own) & (there >= 0) & (error < best)
                best, to = torch.where(better, error, best), torch.where(better, there, to)
            leaves = to != own
            leaves[leaves.clone()] = _ranks(own[leaves], count) < sizes[own[leaves]] - least
            here[visited] = torch.where(leaves, to, own)
    return here.int()


def _tabulate(labels: Tensor, colors: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """μ_v, |v| / (|v| − 1), |v| / (|v| + 1) and |v| of every region; a single pixel never leaves."""
    inside = labels.flatten() >= 0
    labels, colors = labels.flatten()[inside], colors.flatten(0, 1).long()[inside]
    counts = torch.bincount(labels, minlength=count)
    sizes = counts.float()
    sums = colors.new_zeros(count, colors.shape[1]).index_add_(0, labels, colors).float()
    return sums / sizes[:, None], sizes / (sizes - 1).clamp_min(1), sizes / (sizes + 1), counts


def _ranks(regions: Tensor, count: int) -> Tensor:
    """How often the region of each entry occurs before it."""
    order = regions.argsort(stable=True)
    occur = torch.bincount(regions, minlength=count)
    firsts = (occur.cumsum(0) - occur)[regions[order]]
    return torch.empty_like(order).scatter_(0, order, torch.arange(len(order)) - firsts)


def _errors(x: Tensor, regions: Tensor, means: Tensor, factor: Tensor) -> Tensor:
    """factor_v · ‖x − μ_v‖² for each pixel and the region v it is compared with."""
    gap = x - means[regions]
    return factor[regions] * running_sum(gap * gap)


def _removable(own: Tensor) -> Tensor:
    """Where the sides of a pixel that lie in its own region are connected through the corners between them."""
    sides = own[0::2]
    bridges = sides & own[1::2] & sides.roll(-1, 0)
    return sides.sum(0) - bridges.sum(0) == 1
