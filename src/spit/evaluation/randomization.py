"""Sanity check (Adebayo et al., 2018): does a map change when the model forgets what it learnt?"""

import copy
from typing import Literal

import torch
from torch import Tensor

from spit.model import SpitModel
from spit.predictor import Predictor

Part = Literal["head", "model"]


def randomized(predictor: Predictor, part: Part, seed: int = 0) -> Predictor:
    """The same model with the numbers of each tensor in random order: of the head alone, or of everything.

    So every tensor keeps its distribution, and layers their scale. Tokens stay the same.
    """
    model: SpitModel = copy.deepcopy(predictor.model)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, values in model.named_parameters():
            if part == "model" or name.startswith("head."):
                order = torch.randperm(values.numel(), generator=random).to(values.device)
                values.copy_(values.flatten()[order].view_as(values))
    return Predictor(model, predictor.name, predictor.size)


def rank_correlation(one: Tensor, other: Tensor) -> Tensor:
    """Spearman's correlation of two maps, ``(B, H, W)`` each, to ``(B,)``; 0 if a map has one value.

    Pixels of equal value, such as those of a token, share the mean of their ranks.
    """
    found = [torch.stack([_mean_ranks(values.flatten()) for values in maps]) for maps in (one, other)]
    centred = [ranks - ranks.mean(1, keepdim=True) for ranks in found]
    product = (centred[0] * centred[1]).sum(1)
    scale = (centred[0].square().sum(1) * centred[1].square().sum(1)).sqrt()
    return torch.where(scale > 0, product / scale.clamp(min=1e-300), torch.zeros_like(scale))


def _mean_ranks(values: Tensor) -> Tensor:
    _, group, counts = values.unique(return_inverse=True, return_counts=True)
    ends = counts.cumsum(0).double()
    ranks: Tensor = (ends - (counts - 1) / 2)[group]
    return ranks
