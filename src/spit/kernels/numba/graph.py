"""Superpixel contraction (§2.2): the graph of one image, level by level, whatever its arrays are made of."""

from typing import Any, ClassVar

import numpy as np

from spit.kernels import Array
from spit.kernels.numba import contraction, forest
from spit.kernels.numba.regions import climb
from spit.kernels.rules import EUCLIDEAN, Rules


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

    This one has arrays and compiled loops, and edges and sums from level 1 on. The reference's has tensors.

    Args:
        planes: features of the pixels, ``(C, H, W)`` int16.
        rules: how regions are joined.
    """

    contraction: ClassVar[Any] = contraction
    forest: ClassVar[Any] = forest
    edges: Any  # (E, 2)
    sums: Any  # (V, C)
    sizes: Any  # (V,)
    boxes: Any  # (V, 4): first and last row and column

    def __init__(self, planes: Any, rules: Rules) -> None:
        self.planes, self.rules = planes, rules
        self.sizes = np.empty(0, np.int64)

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
        while (before := len(self.sizes)) > limit:
            rounds.append(self.contract(self.forest.keep_heaviest(*self.link_regions(None), limit)))
            if len(self.sizes) == before:
                raise ValueError(f"expected connected regions, of which {limit} can be made by joining neighbours, got "
                                 f"{before} without any to join")
        parents = rounds.pop()
        while rounds:  # from the coarse end: only the last step is long
            parents = parents[rounds.pop()]
        return parents

    def between(self, below: Any, above: Any | None, count: int) -> Any:
        """Join the regions of one partition within those of another until ``count`` are left.

        Shape:
            below and above ``(P,)`` to ``(P,)``.
        """
        self.merge(below, int(below.max()) + 1)
        if above is not None:
            ceiling = self.numbers()
            ceiling[below] = above
            self.edges = self.edges[ceiling[self.edges[:, 0]] == ceiling[self.edges[:, 1]]]
        return self.bound(count)[below]

    def numbers(self) -> Any:
        """0 to V − 1."""
        return np.arange(len(self.sizes), dtype=np.int32)

    def link_pixels(self) -> Any:
        """Level 0: density is the same for all pairs of pixels, and pixels have no self-loops (§2.2)."""
        return contraction.link_pixels(self.planes, self.rules.kind)

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
        if len(self.sizes) > 0:
            self.edges = self.contraction.contract_edges(self.edges, labels)
            self.sums, self.sizes, self.boxes = self.contraction.sum_regions(self.sums, self.sizes, self.boxes, labels,
                                                                             count)
        else:  # level 0 has no arrays of its own
            self.edges = contraction.adjacency(labels.reshape(self.planes.shape[1:]))
            self.sums, self.sizes, self.boxes = contraction.sum_pixels(self.planes, labels, count)


def between(planes: Array, labels: Array, ceiling: Array | None, count: int) -> Array:
    """The partition with ``count`` regions between one level and the next, see :func:`spit.kernels.between`.

    Shape:
        planes ``(C, H, W)`` int16, labels and ceiling ``(H, W)`` int32 to ``(H, W)`` int32.
    """
    graph = Graph(planes, Rules(similarity="variance"))
    pixels = labels.reshape(-1)
    if count < len(pixels) == pixels[-1] + 1 and np.array_equal(pixels, np.arange(len(pixels), dtype=np.int32)):
        # The first round as level 0 does it, without a list of the pixels' edges.
        links = contraction.link_pixels_within(planes, np.zeros_like(labels) if ceiling is None else ceiling)
        pixels, _ = forest.components(forest.keep_heaviest(*links, count))
    joined: Array = graph.between(pixels, None if ceiling is None else ceiling.reshape(-1), count)
    return joined.reshape(labels.shape)


def superpixel_labels(planes: Array, rules: Rules, out: Array) -> int:
    """The region of each pixel after the last level, and the number of regions.

    Shape:
        planes ``(C, H, W)`` int16, out ``(H, W)`` int32, contiguous, which is filled.
    """
    graph = Graph(planes, rules)
    climb(graph.contract_all(), out.reshape(-1))
    return len(graph.sizes)
