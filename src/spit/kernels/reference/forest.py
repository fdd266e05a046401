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
    vertices = torch.arange(len(chosen))
    return torch.where((chosen[chosen] == vertices) & (vertices < chosen), vertices, chosen)


def keep_heaviest(chosen: Tensor, weights: Tensor, bound: int) -> Tensor:
    """Cancel the lightest choices of a forest, so that it loses as many trees as one round may.

    Shape:
        chosen and weights ``(V,)``; the choices that are left ``(V,)``.
    """
    chosen, count = break_pairs(chosen), len(chosen)
    children = (chosen != torch.arange(count)).nonzero()[:, 0]
    joined = min(count - bound, max(count // ROUND, count - FAR * bound, 1))
    light = children[weights[children].sort(descending=True, stable=True).indices[joined:]]
    chosen[light] = light
    return chosen


def merge_below(edges: Tensor, means: Tensor, threshold: float) -> Tensor:
    """Final thresholding (App. B): the smallest region that each is joined to by edges shorter than the threshold."""
    u, v = edges.unbind(1)
    gap = means[u] - means[v]
    near = torch.tensor(threshold * threshold, dtype=torch.float32)
    close = running_sum(gap * gap) < near
    return join(len(means), u[close], v[close])
