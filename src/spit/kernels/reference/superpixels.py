"""Superpixels by parallel edge contraction (§2.2).

A weight is float32 made from + − × ÷ √ alone, one operation at a time in the order written in
``contraction.py``.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.kernels.portable import level_offsets
from spit.kernels.reference import contraction, forest
from spit.kernels.reference.regions import compose
from spit.kernels.rules import EUCLIDEAN, Levels, Rules


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """Hierarchical partitions by parallel edge contraction.

    Level t maps the regions of π^(t) to those of π^(t+1); π^(0) has a region for each pixel. There are
    ``rules.levels`` of them, then one for the final merge and one for the bound on the count if these are set.

    Shape:
        features ``(B, C, H, W)`` int16; each level is ``(parents, counts)``: ``(ΣV,)`` int32, numbered within
        each image, and ``(B,)`` int64.
    """
    return pack_levels([Graph(image, rules).contract_all() for image in features])


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """The last level of :func:`superpixels` alone: the region of each pixel.

    Shape:
        features ``(B, C, H, W)`` int16 to labels ``(B, H, W)`` int32 and counts ``(B,)`` int64.
    """
    levels = superpixels(features, rules)
    return flatten(levels, features, compose), levels[-1][1]


def between(features: Tensor, labels: Tensor, ceiling: Tensor | None, count: int) -> Tensor:
    """The partition with ``count`` regions between one level and the next.

    Regions join where the squared error of their features grows least.

    Args:
        labels: the level below, with more regions than wanted.
        ceiling: the level above, whose boundaries stay; None is the whole image.

    Shape:
        features ``(C, H, W)`` int16, labels and ceiling ``(H, W)``, all on the CPU, to ``(H, W)`` int32.
    """
    return Graph(features, Rules(similarity="variance")).between(labels, ceiling, count)


def pack_levels(images: Sequence[Sequence[Any]]) -> Levels:
    """The levels of each image, tensors or arrays, side by side."""
    return [(torch.cat([torch.as_tensor(parents) for parents in level]).int(),
             torch.tensor([int(parents.max()) + 1 for parents in level])) for level in zip(*images, strict=True)]


def flatten(levels: Levels, features: Tensor, compose: Callable[[list[Tensor], list[Tensor]], Tensor]) -> Tensor:
    """All levels in one: the region of each pixel, ``(B, H, W)``."""
    return compose([parents for parents, _ in levels], level_offsets(levels, features)).view(
        len(features), *features.shape[2:])


def contract_levels(graph: Any) -> list[Any]:
    """The levels of §2.2 and the final merge of App. B, on the graph of any backend; the parents of each."""
    rules = graph.rules
    levels = [graph.contract(graph.link_pixels())]
    for _ in range(1, rules.levels):
        levels.append(graph.contract(graph.link_regions(rules.loop_clip)[0]))
    if rules.merge_threshold > 0:
        levels.append(graph.contract(graph.merge_below(rules.merge_threshold)))
    return levels


class Graph:
    """G^(t) of one image: regions with integer sums of their features, sizes and boxes; edges between neighbours.

    The CPU's graph has arrays instead of tensors, and compiled ``contraction`` and ``forest``.
    """

    contraction: ClassVar[Any] = contraction
    forest: ClassVar[Any] = forest
    edges: Any  # (E, 2)
    sums: Any  # (V, C)
    sizes: Any  # (V,)
    boxes: Any  # (V, 4): first and last row and column

    def __init__(self, features: Tensor, rules: Rules) -> None:
        self.rules = rules
        channels, height, width = features.shape
        y, x = (place.flatten() for place in torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"))
        self.edges = contraction.adjacency(height, width)
        self.sums = features.reshape(channels, -1).T.long()
        self.sizes = torch.ones(height * width, dtype=torch.int64)
        self.boxes = torch.stack([y, x, y, x], dim=1)

    def contract_all(self) -> list[Any]:
        """The parents of every level, of the final merge and of the bound on the count."""
        levels = contract_levels(self)
        return levels if self.rules.max_tokens is None else [*levels, self.bound(self.rules.max_tokens)]

    def bound(self, limit: int) -> Any:
        """Join regions until at most ``limit`` are left, in rounds without self-loops.

        A level would join every region to its best neighbour. Of these choices, a forest, a round takes
        only the heaviest, see :data:`~spit.kernels.rules.ROUND`; each removes exactly one region.
        """
        rounds = [self.numbers()]
        while len(self.sizes) > limit:
            rounds.append(self.contract(self.forest.keep_heaviest(*self.link_regions(None), limit)))
        parents = rounds.pop()
        while rounds:  # from the coarse end: only the last step is long
            parents = parents[rounds.pop()]
        return parents

    def between(self, labels: Tensor, ceiling: Tensor | None, count: int) -> Tensor:
        """Join the regions of ``labels`` within those of ``ceiling``: see the function of this name."""
        below = self.array(labels)
        self.merge(below, int(below.max()) + 1)
        if ceiling is not None:
            above = self.numbers()
            above[below] = self.array(ceiling)
            self.edges = self.edges[above[self.edges[:, 0]] == above[self.edges[:, 1]]]
        return torch.as_tensor(self.bound(count)[below]).view(labels.shape).int()

    def array(self, labels: Tensor) -> Any:
        """Labels as this graph takes them, ``(P,)``."""
        return labels.flatten().long()

    def numbers(self) -> Any:
        """0 to V − 1."""
        return torch.arange(len(self.sizes))

    def link_pixels(self) -> Any:
        """Level 0: density is the same for all pairs of pixels, and pixels have no self-loops (§2.2)."""
        points = contraction.region_points(self.sums, self.sizes, self.rules.kind)
        return contraction.link_regions(self.edges, points, self.sizes, self.boxes, points.reshape(-1)[:0], 0.0,
                                        self.rules.kind)[0]

    def link_regions(self, loop_clip: float | None) -> tuple[Any, Any]:
        """Ê^(t): each region's best neighbour, or itself if self-loops have a bound, and the weight."""
        rules = self.rules
        points = self.contraction.region_points(self.sums, self.sizes, rules.kind)
        loops = points.reshape(-1)[:0]
        if loop_clip is not None:
            loops = self.contraction.loop_weights(self.sizes, rules.loop_mean, loop_clip)
        chosen, weights = self.contraction.link_regions(self.edges, points, self.sizes, self.boxes, loops,
                                                        rules.compactness, rules.kind)
        return chosen, weights

    def merge_below(self, threshold: float) -> Any:
        """Final thresholding (App. B): each region to the smallest it is joined with."""
        means = self.contraction.region_points(self.sums, self.sizes, EUCLIDEAN)
        return self.forest.merge_below(self.edges, means, threshold)

    def contract(self, chosen: Any) -> Any:
        """π^(t) → π^(t+1): the trees of the forest become regions; their numbers."""
        labels, count = self.forest.components(chosen)
        self.merge(labels, count)
        return labels

    def merge(self, labels: Any, count: int) -> None:
        """Make one region of all that have the same label."""
        self.edges = self.contraction.contract_edges(self.edges, labels)
        self.sums, self.sizes, self.boxes = self.contraction.sum_regions(self.sums, self.sizes, self.boxes, labels,
                                                                         count)
