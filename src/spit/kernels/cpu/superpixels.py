"""Superpixel contraction (§2.2) on the CPU, image by image: ``reference.superpixels``, bit for bit."""

import numpy as np
import torch
from torch import Tensor

from spit.kernels.cpu import contraction, forest
from spit.kernels.cpu.regions import compose
from spit.kernels.cpu.threads import Array, for_each_image
from spit.kernels.reference.superpixels import bound, contract_image, flatten
from spit.kernels.rules import EUCLIDEAN, Levels, Rules


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """See :func:`spit.kernels.reference.superpixels`."""
    planes = features.contiguous().numpy()
    images: list[list[Array]] = [[] for _ in planes]

    def contract(b: int) -> None:
        images[b] = contract_image(_Graph(planes[b], rules))

    for_each_image(contract, len(planes))
    return [(torch.cat([torch.from_numpy(parents) for parents in level]),
             torch.tensor([int(parents.max()) + 1 for parents in level]))
            for level in zip(*images, strict=True)]


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """See :func:`spit.kernels.reference.superpixel_labels`."""
    levels = superpixels(features, rules)
    return flatten(levels, features, compose), levels[-1][1]


def between(features: Tensor, labels: Tensor, ceiling: Tensor | None, count: int) -> Tensor:
    """See :func:`spit.kernels.reference.between`."""
    graph = _Graph(features.contiguous().numpy(), Rules(similarity="variance"))
    below = labels.int().flatten().numpy()
    graph.merge(below, int(below.max()) + 1)
    if ceiling is not None:
        above = np.zeros(len(graph.sizes), np.int32)
        above[below] = ceiling.flatten().numpy()
        graph.edges = graph.edges[above[graph.edges[:, 0]] == above[graph.edges[:, 1]]]
    return torch.from_numpy(bound(graph, count)[below]).view(labels.shape)


class _Graph:
    """G^(t) of one image; it has edges and sums from level 1 on."""

    edges: Array  # (E, 2)
    sums: Array  # (V, C)
    boxes: Array  # (V, 4): first and last row and column
    keep_heaviest = staticmethod(forest.keep_heaviest)

    def __init__(self, planes: Array, rules: Rules) -> None:
        self.planes, self.rules = planes, rules
        self.sizes = np.empty(0, np.int64)  # (V,)

    def numbers(self) -> Array:
        """0 to V − 1."""
        return np.arange(len(self.sizes), dtype=np.int32)

    def link_pixels(self) -> Array:
        """Level 0: the best of four neighbours."""
        return contraction.link_pixels(self.planes, self.rules.kind)

    def link_regions(self, loops: bool) -> tuple[Array, Array]:
        """Ê^(t), t ≥ 1: each region's best neighbour, or itself with ``loops``, and the weight."""
        rules, alone = self.rules, np.empty(0, np.float32)
        points = contraction.region_points(self.sums, self.sizes, rules.kind)
        if loops:
            alone = contraction.loop_weights(self.sizes, rules.loop_mean, rules.loop_clip or 0.0)
        ratio = (np.float32(rules.compactness), np.float32(1 - rules.compactness))
        return contraction.link_regions(self.edges, points, self.sizes, self.boxes, alone, ratio, rules.kind)

    def merge_below(self, threshold: float) -> Array:
        """Final thresholding (App. B): each region to the smallest it is joined with."""
        return forest.merge_below(self.edges, contraction.region_points(self.sums, self.sizes, EUCLIDEAN), threshold)

    def contract(self, chosen: Array) -> Array:
        """π^(t) → π^(t+1): the trees of the forest become regions; their numbers."""
        labels, count = forest.components(chosen)
        self.merge(labels, count)
        return labels

    def merge(self, labels: Array, count: int) -> None:
        """Make one region of all that have the same label."""
        if len(self.sizes) == 0:  # regions of pixels
            self.edges = contraction.adjacency(labels.reshape(self.planes.shape[1:]))
            sums = contraction.sum_pixels(self.planes, labels, count)
        else:
            self.edges = contraction.contract_edges(self.edges, labels)
            sums = contraction.sum_regions(self.sums, self.sizes, self.boxes, labels, count)
        self.sums, self.sizes, self.boxes = sums
