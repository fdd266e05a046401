"""The numbers that steer superpixel contraction (§2.2, App. B), the same for every backend."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

SCALE = 2048
"""Superpixel features are integers: ±SCALE stands for ±1."""


Levels = list[tuple[Tensor, Tensor]]
"""For each level: the parents of all regions, packed, and the count of regions of each image above."""


@dataclass(frozen=True)
class Rules:
    """How regions are joined.

    Attributes:
        levels: T, how many times every region joins its best neighbour.
        similarity: ``sim`` between mean features: the cosine, or minus the Euclidean distance.
        loop_mean: a region's self-loop compares its size with this many mean sizes.
        loop_clip: bound on the self-loop's weight; None is no self-loops, inf no bound.
        compactness: λ of the regularised weight.
        merge_threshold: after the last level, neighbours closer than this are joined (App. B).
        max_tokens: upper bound on the regions of an image.
    """

    levels: int = 4
    similarity: Literal["cosine", "euclidean"] = "cosine"
    loop_mean: float = 1.0
    loop_clip: float | None = 0.75
    compactness: float = 0.0
    merge_threshold: float = 0.0
    max_tokens: int | None = None
