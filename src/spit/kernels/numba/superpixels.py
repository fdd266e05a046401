"""Superpixel contraction (§2.2) by compiled loops: ``reference.superpixels``, bit for bit, one image per thread."""

import numpy as np

from spit.kernels import Array
from spit.kernels.numba import contraction, forest
from spit.kernels.numba.regions import climb
from spit.kernels.numba.threads import for_each_image
from spit.kernels.rules import EUCLIDEAN, Rules


def superpixels(features: Array, rules: Rules) -> list[tuple[Array, Array]]:
    """See :func:`spit.kernels.reference.superpixels`."""
    images = for_each_image(lambda planes: Graph(planes, rules).contract_all(), features)
    return [(np.concatenate(level), np.array([int(parents.max()) + 1 for parents in level]))
            for level in zip(*images, strict=True)]


def superpixel_labels(features: Array, rules: Rules) -> tuple[Array, Array]:
    """See :func:`spit.kernels.reference.superpixel_labels`."""
    labels = np.empty((len(features), *features.shape[2:]), np.int32)

    def cut(planes: Array, out: Array) -> int:
        graph = Graph(planes, rules)
        climb(graph.contract_all(), out.reshape(-1))
        return len(graph.sums)

    return labels, np.array(for_each_image(cut, features, labels))


def between(features: Array, labels: Array, ceiling: Array | None, count: int) -> Array:
    """See :func:`spit.kernels.reference.between`."""
    graph = Graph(features, Rules(similarity="variance"))
    below = np.ascontiguousarray(labels, np.int32)
    pixels = below.reshape(-1)
    graph.merge_pixels(pixels, int(pixels.max()) + 1)
    if ceiling is not None:
        region_above = graph.numbers()
        region_above[pixels] = ceiling.reshape(-1)
        graph.edges = graph.edges[region_above[graph.edges[:, 0]] == region_above[graph.edges[:, 1]]]
    joined: Array = graph.bound(count)[pixels]
    return joined.reshape(labels.shape)


class Graph:
    """G^(t) of one image from level 1 on: regions with sums of their features and sizes; edges between neighbours.

    Boxes are kept where compactness reads them.

    Args:
        planes: features of the pixels, ``(C, H, W)`` int16.
        rules: how regions are joined.
    """

    edges: Array  # (E, 2)
    sums: Array  # (V, L), the sizes in the last column
    boxes: Array | None  # (V, 4)

    def __init__(self, planes: Array, rules: Rules) -> None:
        self.planes, self.rules = planes, rules

    def contract_all(self) -> list[Array]:
        """The parents of every level, of the final merge and of the bound on the count."""
        rules = self.rules
        labels, count = forest.components(contraction.link_pixels(self.planes, rules.kind))
        self.merge_pixels(labels, count)
        levels = [labels]
        for _ in range(1, rules.levels):
            levels.append(self.contract(self.link(rules.loop_clip)[0]))
        if rules.merge_threshold > 0:
            means = contraction.region_points(self.sums, EUCLIDEAN)
            levels.append(self.contract(forest.merge_below(self.edges, means, rules.merge_threshold)))
        if rules.max_tokens is not None:
            levels.append(self.bound(rules.max_tokens))
        return levels

    def bound(self, limit: int) -> Array:
        """Join regions until at most ``limit`` are left; see the reference."""
        rounds = [self.numbers()]
        while (before := len(self.sums)) > limit:
            rounds.append(self.contract(forest.keep_heaviest(*self.link(None), limit)))
            if len(self.sums) == before:
                raise ValueError(f"expected connected regions, of which {limit} can be made by joining neighbours, got "
                                 f"{before} without any to join")
        parents = rounds.pop()
        while rounds:  # from the coarse end: only the last step is long
            parents = parents[rounds.pop()]
        return parents

    def numbers(self) -> Array:
        """0 to V − 1."""
        return np.arange(len(self.sums), dtype=np.int32)

    def link(self, loop_clip: float | None) -> tuple[Array, Array]:
        """Ê^(t): each region's best neighbour, or itself if self-loops have a bound, and the weight."""
        rules = self.rules
        points, sizes = contraction.region_points(self.sums, rules.kind), self.sums[:, -1]
        loops = contraction.loop_scale(sizes, self.planes[0].size, loop_clip)
        return contraction.link_regions(self.edges, points, sizes, self.boxes, loops, rules.compactness, rules.kind)

    def contract(self, chosen: Array) -> Array:
        """π^(t) → π^(t+1): the trees of the forest become regions; their numbers."""
        labels, count = forest.components(chosen)
        self.edges = contraction.contract_edges(self.edges, labels)
        self.sums = contraction.sum_regions(self.sums, labels, count)
        if self.boxes is not None:
            self.boxes = contraction.box_regions(self.boxes, labels, count)
        return labels

    def merge_pixels(self, labels: Array, count: int) -> None:
        """π^(0) → π^(1)."""
        image = labels.reshape(self.planes.shape[1:])
        self.edges = contraction.adjacency(image)
        self.sums, self.boxes = contraction.sum_pixels(self.planes, image, count, self.rules.compactness > 0)
