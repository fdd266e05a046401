"""Superpixel contraction (§2.2) on the CPU, image by image: ``reference.superpixels``, bit for bit."""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from spit.kernels.cpu import contraction, forest
from spit.kernels.cpu.regions import climb
from spit.kernels.cpu.threads import Array, for_each_image
from spit.kernels.reference.superpixels import Graph
from spit.kernels.rules import Levels, Rules


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """See :func:`spit.kernels.reference.superpixels`."""
    images = for_each_image(lambda planes: _Graph(planes, rules).contract_all(), features)
    # In numpy: torch would start threads of its own for each array, which wait for each other on a busy machine.
    counts = torch.tensor([[len(above) for above in levels[1:]] + [int(levels[-1].max()) + 1] for levels in images])
    return [(torch.from_numpy(np.concatenate(level)), above)
            for level, above in zip(zip(*images, strict=True), counts.T.contiguous(), strict=True)]


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """See :func:`spit.kernels.reference.superpixel_labels`."""
    labels = torch.empty(len(features), *features.shape[2:], dtype=torch.int32)

    def cut(planes: Array, out: Array) -> int:
        graph = _Graph(planes, rules)
        climb(graph.contract_all(), out.reshape(-1))
        return len(graph.sizes)

    return labels, torch.tensor(for_each_image(cut, features, labels))


def between(features: Tensor, labels: Tensor, ceiling: Tensor | None, count: int) -> Tensor:
    """See :func:`spit.kernels.reference.between`."""
    graph = _Graph(features.contiguous().numpy(), Rules(similarity="variance"))
    return graph.between(labels, ceiling, count)


class _Graph(Graph):
    """G^(t) of one image; it has edges and sums from level 1 on."""

    contraction: ClassVar[Any] = contraction
    forest: ClassVar[Any] = forest

    def __init__(self, planes: Array, rules: Rules) -> None:
        self.planes, self.rules = planes, rules
        self.sizes = np.empty(0, np.int64)

    def between(self, labels: Tensor, ceiling: Tensor | None, count: int) -> Tensor:
        pixels = self.array(labels)
        if count < len(pixels) == pixels[-1] + 1 and np.array_equal(pixels, np.arange(len(pixels), dtype=np.int32)):
            # The first round as level 0 does it, without a list of the pixels' edges.
            inside = torch.zeros_like(labels) if ceiling is None else ceiling
            links = contraction.link_pixels_within(self.planes, inside.int().contiguous().numpy())
            first, _ = forest.components(forest.keep_heaviest(*links, count))
            labels = torch.from_numpy(first).view(labels.shape)
        return super().between(labels, ceiling, count)

    def array(self, labels: Tensor) -> Array:
        return labels.flatten().int().numpy()

    def numbers(self) -> Array:
        return np.arange(len(self.sizes), dtype=np.int32)

    def link_pixels(self) -> Array:
        return contraction.link_pixels(self.planes, self.rules.kind)

    def merge(self, labels: Array, count: int) -> None:
        if len(self.sizes) > 0:
            return super().merge(labels, count)
        self.edges = contraction.adjacency(labels.reshape(self.planes.shape[1:]))
        self.sums, self.sizes, self.boxes = contraction.sum_pixels(self.planes, labels, count)
