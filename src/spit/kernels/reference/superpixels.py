"""Superpixels by parallel edge contraction (§2.2).

A weight is float32 made from + − × ÷ √ alone, one operation at a time in the order written in
``contraction.py``.
"""

import torch
from torch import Tensor

from spit.kernels.portable import Levels, flatten
from spit.kernels.reference.contraction import (
    adjacency,
    contract_edges,
    link_regions,
    loop_weights,
    region_points,
    sum_regions,
)
from spit.kernels.reference.forest import components, keep_heaviest, merge_below
from spit.kernels.rules import EUCLIDEAN, Rules


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """Hierarchical partitions by parallel edge contraction.

    Level t maps the regions of π^(t) to those of π^(t+1); π^(0) has a region for each pixel. There are
    ``rules.levels`` of them, then one for the final merge and one for the bound on the count if these are set.

    Shape:
        features ``(B, C, H, W)`` int16; each level is ``(parents, counts)``: ``(ΣV,)`` int32, numbered within
        each image, and ``(B,)`` int64.
    """
    images = [Graph(image, rules).contract_all() for image in features]
    return [(torch.cat(level).int(), torch.tensor([int(parents.max()) + 1 for parents in level]))
            for level in zip(*images, strict=True)]


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """The last level of :func:`superpixels` alone: the region of each pixel.

    Shape:
        features ``(B, C, H, W)`` int16 to labels ``(B, H, W)`` int32 and counts ``(B,)`` int64.
    """
    levels = superpixels(features, rules)
    return flatten(levels, features), levels[-1][1]


def between(features: Tensor, labels: Tensor, ceiling: Tensor | None, count: int) -> Tensor:
    """The partition with ``count`` regions between one level and the next.

    Regions join where the squared error of their features grows least.

    Args:
        labels: the level below, with more regions than wanted.
        ceiling: the level above, whose boundaries stay; None is the whole image.

    Shape:
        features ``(C, H, W)`` int16, labels and ceiling ``(H, W)``, all on the CPU, to ``(H, W)`` int32.
    """
    graph = Graph(features, Rules(similarity="variance"))
    below = labels.flatten().long()
    graph.merge(below, int(below.max()) + 1)
    if ceiling is not None:
        above = graph.numbers()
        above[below] = ceiling.flatten().long()
        graph.edges = graph.edges[above[graph.edges[:, 0]] == above[graph.edges[:, 1]]]
    return graph.bound(count)[below].view(labels.shape).int()


class Graph:
    """G^(t) of one image: regions with integer sums of their features, sizes and boxes; edges between neighbours.

    Shape:
        edges ``(E, 2)``, sums ``(V, C)``, sizes ``(V,)``, boxes ``(V, 4)``: first and last row and column; all int64.
    """

    def __init__(self, features: Tensor, rules: Rules) -> None:
        self.rules = rules
        channels, height, width = features.shape
        y, x = (place.flatten() for place in torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"))
        self.edges = adjacency(height, width)
        self.sums = features.reshape(channels, -1).T.long()
        self.sizes = torch.ones(height * width, dtype=torch.int64)
        self.boxes = torch.stack([y, x, y, x], dim=1)

    def contract_all(self) -> list[Tensor]:
        """The parents of every level, of the final merge and of the bound on the count."""
        rules = self.rules
        levels = [self.contract(self.link_pixels())]
        for _ in range(1, rules.levels):
            levels.append(self.contract(self.link_regions(rules.loop_clip)[0]))
        if rules.merge_threshold > 0:
            means = region_points(self.sums, self.sizes, EUCLIDEAN)
            levels.append(self.contract(merge_below(self.edges, means, rules.merge_threshold)))
        if rules.max_tokens is not None:
            levels.append(self.bound(rules.max_tokens))
        return levels

    def link_pixels(self) -> Tensor:
        """Ê^(0): density is the same for all pairs of pixels, and pixels have no self-loops (§2.2)."""
        points = region_points(self.sums, self.sizes, self.rules.kind)
        return link_regions(self.edges, points, self.sizes, self.boxes, points[:0, 0], 0.0, self.rules.kind)[0]

    def link_regions(self, loop_clip: float | None) -> tuple[Tensor, Tensor]:
        """Ê^(t): each region's best neighbour, or itself if self-loops have a bound, and the weight."""
        rules = self.rules
        points = region_points(self.sums, self.sizes, rules.kind)
        loops = points[:0, 0] if loop_clip is None else loop_weights(self.sizes, loop_clip)
        return link_regions(self.edges, points, self.sizes, self.boxes, loops, rules.compactness, rules.kind)

    def bound(self, limit: int) -> Tensor:
        """Join regions until at most ``limit`` are left, in rounds without self-loops; the parents.

        A level would join every region to its best neighbour. Of these choices, a forest, a round takes
        only the heaviest, see :data:`~spit.kernels.rules.ROUND`; each removes exactly one region.
        """
        parents = self.numbers()
        while (before := len(self.sizes)) > limit:
            parents = self.contract(keep_heaviest(*self.link_regions(None), limit))[parents]
            if len(self.sizes) == before:
                raise ValueError(f"expected connected regions, of which {limit} can be made by joining neighbours, got "
                                 f"{before} without any to join")
        return parents

    def numbers(self) -> Tensor:
        """0 to V − 1."""
        return torch.arange(len(self.sizes))

    def contract(self, chosen: Tensor) -> Tensor:
        """π^(t) → π^(t+1): the trees of the forest become regions; their numbers."""
        labels, count = components(chosen)
        self.merge(labels, count)
        return labels

    def merge(self, labels: Tensor, count: int) -> None:
        """Make one region of all that have the same label."""
        self.edges = contract_edges(self.edges, labels)
        self.sums, self.sizes, self.boxes = sum_regions(self.sums, self.sizes, self.boxes, labels, count)
