"""Superpixel contraction (§2.2) on the CPU, image by image: ``reference.superpixels``, bit for bit."""

import numpy as np
import torch
from torch import Tensor

from spit.kernels.cpu.threads import for_each_image
from spit.kernels.numba import graph
from spit.kernels.portable import Levels
from spit.kernels.rules import Rules


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """See :func:`spit.kernels.reference.superpixels`."""
    images = for_each_image(lambda planes: graph.Graph(planes, rules).contract_all(), features)
    # In numpy: torch would start threads of its own for each array, which wait for each other on a busy machine.
    counts = torch.tensor([[len(above) for above in levels[1:]] + [int(levels[-1].max()) + 1] for levels in images])
    return [(torch.from_numpy(np.concatenate(level)), above)
            for level, above in zip(zip(*images, strict=True), counts.T.contiguous(), strict=True)]


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """See :func:`spit.kernels.reference.superpixel_labels`."""
    labels = torch.empty(len(features), *features.shape[2:], dtype=torch.int32)
    counts = for_each_image(lambda planes, out: graph.superpixel_labels(planes, rules, out), features, labels)
    return labels, torch.tensor(counts)


def between(features: Tensor, labels: Tensor, ceiling: Tensor | None, count: int) -> Tensor:
    """See :func:`spit.kernels.reference.between`."""
    above = None if ceiling is None else ceiling.int().contiguous().numpy()
    joined = graph.between(features.contiguous().numpy(), labels.int().contiguous().numpy(), above, count)
    return torch.from_numpy(joined).int()
