"""Operations in plain torch that give the same bits on every device, and so need no backends."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from spit.kernels.rules import COLOR_STEP, FRACTION, HALF, SCALE, TREE_PUSH
from spit.tokens import offsets_of

Levels = list[tuple[Tensor, Tensor]]
"""For each level, the packed parents of all regions and the number of regions of each image in the level above."""


class Adjacency(NamedTuple):
    """Which regions touch.

    Attributes:
        edges: rows of two regions, the smaller first, in ascending order, ``(E, 2)`` int64.
        lengths: pairs of neighbouring pixels across their border, ``(E,)`` int64.
    """

    edges: Tensor
    lengths: Tensor


def exact_sqrt(x: Tensor) -> Tensor:
    """The float32 nearest to √x. torch's own float32 root is one unit off for 1 value in 160 on some CPUs."""
    return x.double().sqrt().float()


def running_sum(x: Tensor) -> Tensor:
    """Sum over the last dimension from left to right, so that rounding has one order."""
    total = x[..., 0]
    for c in range(1, x.shape[-1]):
        total = total + x[..., c]
    return total


def region_sizes(labels: Tensor, offsets: Tensor) -> Tensor:
    """Pixels in each region.

    Shape:
        labels ``(B, H, W)`` int32, offsets ``(B + 1,)`` int64, answer ``(ΣN,)`` int64.
    """
    packed = labels + offsets[:-1, None, None]
    return torch.bincount(packed.flatten(), minlength=int(offsets[-1]))


def region_centroids(labels: Tensor, offsets: Tensor) -> Tensor:
    """The mean row and column of each region's pixels, from sums of integers.

    Shape:
        labels ``(B, H, W)`` int32, offsets ``(B + 1,)`` int64, answer ``(ΣN, 2)`` float32.
    """
    packed, sizes = (labels + offsets[:-1, None, None]).flatten(), region_sizes(labels, offsets)
    axes = torch.meshgrid(*(torch.arange(pixels, device=labels.device) for pixels in labels.shape[1:]), indexing="ij")
    sums = [torch.zeros_like(sizes).index_add(0, packed, axis.expand(labels.shape).flatten()) for axis in axes]
    return (torch.stack(sums, 1).double() / sizes[:, None]).float()


def region_adjacency(blocks: Sequence[Tensor], count: int) -> Adjacency:
    """The pairs of regions with 4-adjacent pixels, from packed rows of pixels ``(b, H, W)``, all below ``count``."""
    pairs = []
    for rows in blocks:
        for one, other in ((rows[:, :-1], rows[:, 1:]), (rows[..., :-1], rows[..., 1:])):
            apart = one != other
            pairs.append(torch.minimum(one, other)[apart] * count + torch.maximum(one, other)[apart])
    numbers, lengths = torch.cat(pairs).unique(return_counts=True)
    return Adjacency(torch.stack([numbers // count, numbers % count], 1), lengths)


def level_offsets(levels: Levels, features: Tensor) -> list[Tensor]:
    """The offsets of every level, from the pixels up."""
    pixels = torch.full((len(features),), features[0, 0].numel(), device=features.device)
    return [offsets_of(counts) for counts in (pixels, *(counts for _, counts in levels))]


def compose(parents: Sequence[Tensor], offsets: Sequence[Tensor]) -> Tensor:
    """The region that holds each pixel after several levels.

    Args:
        parents: ``parents[t]`` maps each region of level t to its region of level t + 1, numbered within its
            image; level 0 are the pixels.
        offsets: ``offsets[t]`` says where each image's regions of level t begin in packed order.

    Shape:
        parents[t] ``(ΣN^(t),)`` int32, offsets[t] ``(B + 1,)`` int64, answer ``(ΣN^(0),)`` int32.
    """
    labels = parents[-1]
    for lower, above, below in reversed(list(zip(parents[:-1], offsets[1:-1], offsets[:-2], strict=True))):
        labels = labels[lower + above[:-1].repeat_interleave(below.diff(), output_size=len(lower))]
    return labels


def flatten(levels: Levels, features: Tensor) -> Tensor:
    """All levels in one: the region of each pixel, ``(B, H, W)``."""
    return compose([parents for parents, _ in levels], level_offsets(levels, features)).view(
        len(features), *features.shape[2:])


def join(count: int, u: Tensor, v: Tensor) -> Tensor:
    """The smallest vertex that each of ``count`` vertices is connected to by the edges (u, v)."""
    smallest = torch.arange(count, device=u.device)
    while len(u) > 0:
        # A tree's root is its smallest vertex; it hangs itself below the smallest root next to it. Of two neighbouring
        # roots at most one is left, so the rounds are few whatever the shape.
        smallest.scatter_reduce_(0, torch.maximum(u, v), torch.minimum(u, v), "amin")
        while not torch.equal(smallest, further := smallest[smallest]):
            smallest = further
        u, v = smallest[u], smallest[v]
        apart = u != v
        u, v = u[apart], v[apart]
    return smallest


def pieces(fine: Tensor, coarse: Tensor) -> tuple[Tensor, Tensor]:
    """The 4-connected pieces in which both label maps are constant, numbered by their first pixels.

    Shape:
        fine and coarse ``(B, H, W)`` to labels ``(B, H, W)`` int32 and counts ``(B,)`` int64.
    """
    batch = len(fine)
    pixels = torch.arange(fine.numel(), device=fine.device).view(fine.shape)
    u, v = [], []
    for first, second in (((..., slice(None, -1)), (..., slice(1, None))),
                          ((slice(None), slice(None, -1)), (slice(None), slice(1, None)))):
        same = (fine[first] == fine[second]) & (coarse[first] == coarse[second])
        u.append(pixels[first][same])
        v.append(pixels[second][same])
    roots = join(fine.numel(), torch.cat(u), torch.cat(v)).view(batch, -1)
    firsts = roots == pixels.view(batch, -1)
    numbers = firsts.cumsum(1) - 1  # (B, P): in the numbering of each image
    return numbers.flatten()[roots].view(fine.shape).int(), firsts.sum(1)


def saturate(features: Tensor, push: int) -> Tensor:
    """Increase the saturation: move each channel away from the luma, within [−1, 1].

    The luma is 0.299 R + 0.587 G + 0.114 B. Products are rounded to the nearest, halves upwards.

    Args:
        push: ``2**FRACTION`` times the factor.

    Shape:
        ``(B, 3, H, W)`` int16 to the same.
    """
    channels = features.int()
    red, green, blue = channels.unbind(1)
    luma = ((1225 * red + 2404 * green + 467 * blue + HALF) >> FRACTION)[:, None]
    pushed: Tensor = luma + ((push * (channels - luma) + HALF) >> FRACTION)
    return pushed.clamp(-SCALE, SCALE).to(torch.int16)


def tree_colors(pixels: Tensor) -> Tensor:
    """Colours that the tree compares: 8 bits as ±SCALE, saturated if there are three bands; grey counts as RGB.

    Shape:
        ``(B, C, H, W)`` uint8 to ``(B, C', H, W)`` int16.
    """
    colors = pixels.short() * COLOR_STEP - SCALE
    colors = colors.expand(-1, 3, -1, -1) if pixels.shape[1] == 1 else colors
    return saturate(colors, TREE_PUSH) if colors.shape[1] == 3 else colors
