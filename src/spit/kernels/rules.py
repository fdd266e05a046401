"""The numbers that steer superpixel contraction (§2.2, App. B), the same for every backend."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from torch import Tensor

SCALE = 2048
"""Superpixel features are integers: ±SCALE stands for ±1."""

FRACTION = 12
"""Bits of fraction in what features are multiplied by."""
HALF = 2 ** (FRACTION - 1)  # rounds

Similarity = Literal["cosine", "euclidean", "variance"]
COSINE: Final = 0
EUCLIDEAN: Final = 1
VARIANCE: Final = 2

Levels = list[tuple[Tensor, Tensor]]
"""For each level: the parents of all regions, packed, and the count of regions of each image above."""


@dataclass(frozen=True)
class Rules:
    """How regions are joined.

    Attributes:
        levels: T, how many times every region joins its best neighbour.
        similarity: ``sim`` between mean features: the cosine, minus the Euclidean distance, or minus
            what the squared error grows by when the two regions become one (Ward, 1963).
        loop_mean: a region's self-loop compares its size with this many mean sizes.
        loop_clip: bound on the self-loop's weight; None is no self-loops, inf no bound.
        compactness: λ of the regularised weight.
        merge_threshold: after the last level, neighbours closer than this are joined (App. B).
        max_tokens: upper bound on the regions of an image.
    """

    levels: int = 4
    similarity: Similarity = "cosine"
    loop_mean: float = 1.0
    loop_clip: float | None = 0.75
    compactness: float = 0.0
    merge_threshold: float = 0.0
    max_tokens: int | None = None

    @property
    def kind(self) -> int:
        """The similarity as the number that compiled kernels take."""
        return get_args(Similarity).index(self.similarity)


ROUND = 8
"""On the way to a bound, a round takes at most one region in so many away, by the best pairs, and then weighs
all anew. At once it would be a millisecond faster and 0.025 of R² worse (docs/superpixels.md)."""


def round_target(count: int, bound: int) -> int:
    """How many regions one round on the way to ``bound`` leaves."""
    return max(bound, count - max(count // ROUND, 1))
