"""Superpixels by parallel edge contraction (§2.2).

A weight is float32 made from + − × ÷ √ alone, one operation at a time in the order written in
``contraction.py``.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.kernels.numba.graph import Graph
from spit.kernels.portable import Levels, flatten
from spit.kernels.reference import contraction, forest
from spit.kernels.reference.regions import compose
from spit.kernels.rules import Rules


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """Hierarchical partitions by parallel edge contraction.

    Level t maps the regions of π^(t) to those of π^(t+1); π^(0) has a region for each pixel. There are
    ``rules.levels`` of them, then one for the final merge and one for the bound on the count if these are set.

    Shape:
        features ``(B, C, H, W)`` int16; each level is ``(parents, counts)``: ``(ΣV,)`` int32, numbered within
        each image, and ``(B,)`` int64.
    """
    return pack_levels([TensorGraph(image, rules).contract_all() for image in features])


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
    above = None if ceiling is None else ceiling.flatten().long()
    joined: Tensor = TensorGraph(features, Rules(similarity="variance")).between(labels.flatten().long(), above, count)
    return joined.view(labels.shape).int()


def pack_levels(images: Sequence[Sequence[Any]]) -> Levels:
    """The levels of each image, tensors or arrays, side by side."""
    return [(torch.cat([torch.as_tensor(parents) for parents in level]).int(),
             torch.tensor([int(parents.max()) + 1 for parents in level])) for level in zip(*images, strict=True)]


class TensorGraph(Graph):
    """G^(t) of one image in plain torch."""

    contraction: ClassVar[Any] = contraction
    forest: ClassVar[Any] = forest

    def __init__(self, features: Tensor, rules: Rules) -> None:
        self.rules = rules
        channels, height, width = features.shape
        y, x = (place.flatten() for place in torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"))
        self.edges = contraction.adjacency(height, width)
        self.sums = features.reshape(channels, -1).T.long()
        self.sizes = torch.ones(height * width, dtype=torch.int64)
        self.boxes = torch.stack([y, x, y, x], dim=1)

    def numbers(self) -> Tensor:
        return torch.arange(len(self.sizes))

    def link_pixels(self) -> Tensor:
        points = contraction.region_points(self.sums, self.sizes, self.rules.kind)
        return contraction.link_regions(self.edges, points, self.sizes, self.boxes, points.reshape(-1)[:0], 0.0,
                                        self.rules.kind)[0]
