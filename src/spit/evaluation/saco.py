"""Salience-guided faithfulness coefficient (Wu et al., CVPR 2024): whether what is brighter matters more."""

import torch
from torch import Tensor

GROUPS = 10


def group_pixels(ranks: Tensor) -> Tensor:
    """The group of each pixel, from 0, the most important tenth, by the ranks of :func:`spit.attribution.rank_pixels`.

    Shape:
        ``(B, H, W)`` int64 to the same.
    """
    return ranks * GROUPS // ranks[0].numel()


def group_salience(maps: Tensor, groups: Tensor) -> Tensor:
    """The mean value of each group, ``(B, GROUPS)`` float64; means, as a group may have a pixel more than another."""
    sums = torch.zeros(2, len(maps), GROUPS, dtype=torch.float64, device=maps.device)
    flat, values = groups.flatten(1), maps.flatten(1).double()
    sums[0].scatter_add_(1, flat, values)
    sums[1].scatter_add_(1, flat, torch.ones_like(values))
    return sums[0] / sums[1].clamp(min=1)


def saco(salience: Tensor, drops: Tensor) -> Tensor:
    """``Σ_{i<j} ±(s_i − s_j) / Σ_{i<j} |s_i − s_j|``, + where the drop of i is at least that of j; in [−1, 1].

    Shape:
        salience and drops ``(B, GROUPS)``, the more important groups first, to ``(B,)``; 0 for a map of one value.
    """
    weights = salience[:, :, None] - salience[:, None]
    right = torch.where(drops[:, :, None] >= drops[:, None], weights, -weights).triu(1).sum((1, 2))
    total = weights.abs().triu(1).sum((1, 2))
    return torch.where(total > 0, right / total.clamp(min=torch.finfo(total.dtype).tiny), torch.zeros_like(total))
