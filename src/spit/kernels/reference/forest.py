"""From chosen edges to numbered trees: the connected components Ê₊ of §2.2."""

import torch
from torch import Tensor

from spit.kernels.portable import join, running_sum


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


def keep_heaviest(chosen: Tensor, weights: Tensor, target: int) -> Tensor:
    """Cancel the lightest choices of the forest, so that ``target`` trees are left if there are that few."""
    chosen = break_pairs(chosen)
    vertices = torch.arange(len(chosen))
    children = vertices[chosen != vertices]
    heaviest = weights[children].sort(descending=True, stable=True).indices
    spared = children[heaviest[len(vertices) - target :]]
    chosen[spared] = spared
    return chosen


def merge_below(edges: Tensor, means: Tensor, threshold: float) -> Tensor:
    """Final thresholding (App. B): the smallest region that each is joined to by edges shorter than the threshold."""
    u, v = edges.unbind(1)
    gap = means[u] - means[v]
    near = torch.tensor(threshold * threshold, dtype=torch.float32, device=gap.device)
    close = running_sum(gap * gap) < near
    return join(len(means), u[close], v[close])
