"""The graph of an image's regions: what touches what, over how many pixels, and how the colours differ."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spit.images import quantize
from spit.kernels.numba.forest import connect
from spit.segmentation.region_loops import boundaries, join_edges, sum_regions

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# From linear sRGB to X, Y and Z relative to the white point D65 (IEC 61966-2-1, CIE 15).
_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                 [0.0193339, 0.1191920, 0.9503041]]) / np.array([[0.95047], [1.0], [1.08883]])


@dataclass(frozen=True)
class RegionGraph:
    """The regions of one image as nodes, with an edge between two that share a boundary.

    Attributes:
        sizes: pixels of each region.
        sums: over the pixels of each region: its channels in 8 bits, then row and column.
        pairs: the two regions of each edge, the smaller number first.
        lengths: pairs of neighbouring pixels across each edge.
        rim: pixels of each region on the image's border.

    Shape:
        sizes ``(V,)``, sums ``(V, C + 2)``, lengths ``(E,)`` and rim ``(V,)`` float64, pairs ``(E, 2)`` int64.

    Example:
        >>> import torch
        >>> from spit.segmentation import RegionGraph
        >>> graph = RegionGraph.of(torch.zeros(3, 2, 3), torch.tensor([[0, 0, 1], [0, 2, 1]]))
        >>> graph.pairs.tolist(), graph.lengths.tolist()
        ([[0, 1], [0, 2], [1, 2]], [1.0, 2.0, 1.0])
    """

    sizes: Floats
    sums: Floats
    pairs: Integers
    lengths: Floats
    rim: Floats

    @staticmethod
    def of(image: Tensor, labels: Tensor) -> "RegionGraph":
        """The graph of one image, ``(C, H, W)``, with regions 0 … V − 1 in its label map, ``(H, W)``."""
        if labels.shape != image.shape[1:]:
            raise ValueError(f"expected labels of the image's {tuple(image.shape[1:])} pixels, got shape "
                             f"{tuple(labels.shape)}")
        pixels, numbers = quantize(image[None])[0].cpu().numpy(), labels.cpu().numpy().astype(np.int64)
        if numbers.size == 0 or numbers.min() < 0:
            raise ValueError(f"expected labels of 0 or more for some pixels, got shape {numbers.shape}, "
                             f"{f'from {numbers.min()}' if numbers.size else 'without any'}")
        count = int(numbers.max()) + 1
        sums, sizes = sum_regions(np.ascontiguousarray(pixels), numbers, count)
        one, other = boundaries(numbers)
        pairs, lengths = join_edges(one, other, np.ones(len(one)), count)
        border = np.concatenate([numbers[0], numbers[-1], numbers[1:-1, 0], numbers[1:-1, -1]])
        return RegionGraph(sizes, sums, pairs, lengths, np.bincount(border, minlength=count).astype(np.float64))

    def joined(self, groups: Integers) -> "RegionGraph":
        """The graph of larger regions: ``groups``, ``(V,)``, has the number of each region's own."""
        count = int(groups.max()) + 1
        sizes, rim, *sums = (np.bincount(groups, column, count).astype(np.float64)
                             for column in (self.sizes, self.rim, *self.sums.T))
        one, other = (np.ascontiguousarray(ends) for ends in groups[self.pairs].T)
        pairs, lengths = join_edges(one, other, self.lengths, count)
        return RegionGraph(sizes, np.stack(sums, axis=1), pairs, lengths, rim)

    @cached_property
    def colors(self) -> Floats:
        """The mean colour of each region in CIELAB, ``(V, 3)``; other than 1 or 3 channels as they are, in 0…100."""
        means = self.sums[:, :-2] / self.sizes[:, None] / 255
        if means.shape[1] not in (1, 3):
            return means * 100
        linear = np.where(means <= 0.04045, means / 12.92, ((means + 0.055) / 1.055) ** 2.4)
        x, y, z = (np.where(value > 216 / 24389, np.cbrt(value), (24389 / 27 * value + 16) / 116)
                   for value in _XYZ @ (linear if linear.shape[1] == 3 else linear.repeat(3, 1)).T)
        return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)

    @property
    def centers(self) -> Floats:
        """The mean row and column of each region, ``(V, 2)``."""
        centers: Floats = self.sums[:, -2:] / self.sizes[:, None]
        return centers

    def pieces(self, kind: NDArray[np.bool_]) -> Integers:
        """Numbers of the connected pieces of regions of one kind, ``(V,)`` bool to ``(V,)``: each is a region in it."""
        return connected(self.pairs[kind[self.pairs[:, 0]] == kind[self.pairs[:, 1]]], len(kind))


def connected(pairs: Integers, count: int) -> Integers:
    """For each of ``count`` nodes, the smallest node that edges ``(E, 2)`` lead to, itself among them."""
    check_pairs(pairs, count)
    numbers: Integers = connect(pairs, np.arange(count))
    return numbers


def check_pairs(pairs: Integers, count: int) -> None:
    """Raise ValueError if edges, ``(E, 2)``, do not lead between ``count`` nodes."""
    if len(pairs) and not (pairs.min() >= 0 and pairs.max() < count):
        raise ValueError(f"expected edges between nodes 0 to {count - 1}, got {pairs.min()} to {pairs.max()}")
