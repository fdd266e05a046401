"""Superpixels by parallel edge contraction (§2.2).

A weight is float32 made from + − × ÷ √ alone, one operation at a time in the order written in
``contraction.py``.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spit.kernels.reference import contraction, forest
from spit.kernels.reference.regions import compose
from spit.kernels.rules import EUCLIDEAN, Levels, Rules, round_target
from spit.tokens import offsets_of


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """Hierarchical partitions by parallel edge contraction.

    Level t maps the regions of π^(t) to those of π^(t+1); π^(0) has a region for each pixel. There are
    ``rules.levels`` of them, then one for the final merge and one for the bound on the count if these are set.

    Shape:
        features ``(B, C, H, W)`` int16; each level is ``(parents, counts)``: ``(ΣV,)`` int32, numbered within
        each image, and ``(B,)`` int64.
    """
    images = [contract_image(_Graph(image, rules)) for image in features]
    return [(torch.cat(level).int(), torch.tensor([int(parents.max()) + 1 for parents in level]))
            for level in zip(*images, strict=True)]


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
    graph = _Graph(features, Rules(similarity="variance"))
    graph.merge(labels.flatten().long())
    if ceiling is not None:
        above = torch.zeros(len(graph.sizes), dtype=torch.int64)
        above[labels.flatten().long()] = ceiling.flatten().long()
        graph.edges = graph.edges[:, above[graph.edges[0]] == above[graph.edges[1]]]
    parents: Tensor = bound(graph, count)
    return parents[labels.long()].int()


def flatten(levels: Levels, features: Tensor, compose: Callable[[list[Tensor], list[Tensor]], Tensor]) -> Tensor:
    """All levels in one: the region of each pixel, ``(B, H, W)``."""
    batch, _, height, width = features.shape
    pixels = torch.full((batch,), height * width, device=features.device)
    offsets = [offsets_of(counts) for counts in (pixels, *(counts for _, counts in levels))]
    return compose([parents for parents, _ in levels], offsets).view(batch, height, width)


def contract_image(graph: Any) -> list[Any]:
    """All levels of one image, as the parents that its graph (of this backend or the CPU's) gives."""
    rules = graph.rules
    levels = [graph.contract(graph.link_pixels())]
    for _ in range(1, rules.levels):
        chosen, _ = graph.link_regions(loops=rules.loop_clip is not None)
        levels.append(graph.contract(chosen))
    if rules.merge_threshold > 0:
        levels.append(graph.contract(graph.merge_below(rules.merge_threshold)))
    if rules.max_tokens is not None:
        levels.append(bound(graph, rules.max_tokens))
    return levels


def bound(graph: Any, limit: int) -> Any:
    """Join regions until at most ``limit`` are left, in rounds without self-loops.

    A level would join every region to its best neighbour. Of these choices, a forest, a round takes
    only the heaviest, see :func:`round_target`; each removes exactly one region.
    """
    parents = graph.numbers()
    while len(graph.sizes) > limit:
        chosen, weights = graph.link_regions(loops=False)
        target = round_target(len(graph.sizes), limit)
        parents = graph.contract(graph.keep_heaviest(chosen, weights, target))[parents]
    return parents


class _Graph:
    """G^(t) of one image: regions with integer sums of their features, sizes and boxes; edges between neighbours."""

    keep_heaviest = staticmethod(forest.keep_heaviest)

    def __init__(self, features: Tensor, rules: Rules) -> None:
        self.rules = rules
        channels, height, width = features.shape
        y, x = (place.flatten() for place in torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"))
        self.edges = contraction.adjacency(height, width)  # (2, E)
        self.sums = features.reshape(channels, -1).T.long()  # (V, C)
        self.sizes = torch.ones(height * width, dtype=torch.int64)  # (V,)
        self.boxes = torch.stack([y, x, y, x], dim=1)  # (V, 4): first and last row and column

    def numbers(self) -> Tensor:
        """0 to V − 1."""
        return torch.arange(len(self.sizes))

    def link_pixels(self) -> Tensor:
        """Level 0: density is the same for all pairs of pixels, and pixels have no self-loops (§2.2)."""
        points = contraction.region_points(self.sums, self.sizes, self.rules.kind)
        return contraction.link_regions(self.edges, points, self.sizes, self.boxes, None, 0.0, self.rules.kind)[0]

    def link_regions(self, loops: bool) -> tuple[Tensor, Tensor]:
        """Ê^(t), t ≥ 1: each region's best neighbour, or itself with ``loops``, and the weight."""
        rules = self.rules
        points = contraction.region_points(self.sums, self.sizes, rules.kind)
        alone = contraction.loop_weights(self.sizes, rules.loop_mean, rules.loop_clip or 0.0) if loops else None
        return contraction.link_regions(self.edges, points, self.sizes, self.boxes, alone, rules.compactness,
                                        rules.kind)

    def merge_below(self, threshold: float) -> Tensor:
        """Final thresholding (App. B): each region to the smallest it is joined with."""
        return forest.merge_below(self.edges, contraction.region_points(self.sums, self.sizes, EUCLIDEAN), threshold)

    def contract(self, chosen: Tensor) -> Tensor:
        """π^(t) → π^(t+1): the trees of the forest become regions; their numbers."""
        labels = forest.components(chosen)
        self.merge(labels)
        return labels

    def merge(self, labels: Tensor) -> None:
        """Make one region of all that have the same label."""
        self.edges = contraction.contract_edges(self.edges, labels)
        self.sums, self.sizes, self.boxes = contraction.sum_regions(self.sums, self.sizes, self.boxes, labels)
