"""From chosen edges to numbered trees: the connected components Ê₊ of §2.2."""

import torch
from torch import Tensor

from spit.kernels.portable import join, running_sum
from spit.kernels.rules import FAR, ROUND


def components(chosen: Tensor) -> tuple[Tensor, int]:
    """Ê₊: follow the choices to their roots, and number the roots in order; labels and count."""
    parents = break_pairs(chosen)
    while not torch.equal(parents, parents[parents]):
        parents = parents[parents]
    roots = parents == torch.arange(len(parents))
    return (roots.cumsum(0) - 1)[parents], int(roots.sum())


def break_pairs(chosen: Tensor) -> Tensor:
    """Make the smaller of two vertices that chose each other a root."""
    vertices = torch.arange(len(chosen), device=chosen.device)
    return torch.where((chosen[chosen] == vertices) & (vertices < chosen), vertices, chosen)


def keep_heaviest(chosen: Tensor, weights: Tensor, bound: int, counts: Tensor | None = None) -> Tensor:
    """Cancel the lightest choices of each image's forest, so that it loses as many trees as one round may.

    Shape:
        chosen and weights ``(ΣV,)``, counts ``(B,)`` (default: one image); the choices that are left ``(ΣV,)`` int64.
    """
    chosen = break_pairs(chosen.long())
    counts = torch.tensor([len(chosen)]) if counts is None else counts
    vertices = torch.arange(len(chosen), device=chosen.device)
    batch = torch.arange(len(counts), device=chosen.device)
    images = batch.repeat_interleave(counts)
    children = vertices[chosen != vertices]
    order = children[weights[children].sort(descending=True, stable=True).indices]
    order = order[images[order].sort(stable=True).indices]  # image by image, the heaviest first
    rank = torch.arange(len(order), device=chosen.device) - torch.searchsorted(images[order], batch)[images[order]]
    joined = torch.minimum((counts - bound).clamp_min(0),
                           torch.maximum(counts // ROUND, counts - FAR * bound).clamp_min(1))
    spared = order[rank >= joined[images[order]]]
    chosen[spared] = spared
    return chosen


def merge_below(edges: Tensor, means: Tensor, threshold: float) -> Tensor:
    """Final thresholding (App. B): the smallest region that each is joined to by edges shorter than the threshold."""
    u, v = edges.unbind(1)
    gap = means[u] - means[v]
    near = torch.tensor(threshold * threshold, dtype=torch.float32, device=gap.device)
    close = running_sum(gap * gap) < near
    return join(len(means), u[close], v[close])
