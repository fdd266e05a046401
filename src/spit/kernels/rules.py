"""The constants and settings of superpixel contraction (§2.2, App. B), shared by all backends."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

SCALE = 2048
"""Superpixel features are integers; ±SCALE stands for ±1."""

FRACTION = 12
"""Fraction bits of the fixed-point factors that features are multiplied by."""
HALF = 2 ** (FRACTION - 1)  # added before a shift, to round

Similarity = Literal["cosine", "euclidean", "variance"]
COSINE: Final = 0
EUCLIDEAN: Final = 1
VARIANCE: Final = 2
_KINDS: Final = {name: number for number, name in enumerate(get_args(Similarity))}


@dataclass(frozen=True)
class Rules:
    """How regions are joined.

    Attributes:
        levels: T, how many times every region joins its best neighbour.
        similarity: ``sim`` of mean features: the cosine, minus the Euclidean distance, or minus the growth
            of the squared error when the two regions join (Ward, 1963).
        loop_clip: bound on the weight of a self-loop; inf is no bound, None is no self-loops.
        compactness: λ of the regularised weight.
        merge_threshold: after the last level, join neighbours closer than this (App. B).
        max_tokens: upper bound on the regions of an image.
    """

    levels: int = 4
    similarity: Similarity = "cosine"
    loop_clip: float | None = 0.75
    compactness: float = 0.0
    merge_threshold: float = 0.0
    max_tokens: int | None = None

    @property
    def kind(self) -> int:
        """The similarity as the number that kernels take."""
        return _KINDS[self.similarity]


ROUND = 8
"""A round towards ``max_tokens`` removes at most one region in ROUND, by the best pairs, before all are weighed
again. A single round would be a millisecond faster and 0.025 of R² worse (docs/superpixels.md)."""

FAR = 16
"""From more than FAR times the bound, the first round goes to FAR times at once. The levels of a photo end below that;
what is above are the pixels of flat images, whose rounds would take fifty times as long as the levels."""

EAGER = (1024.0, 32.0, 4.0)
"""In round t of the tree a region joins its cheapest neighbour also where that one prefers another, if its own cost is
at most EAGER[t] times its neighbour's. Mutual choices alone look at 5.6 times as many edges for .001 more of R².
Without the bound an outlier would be forced across an edge."""

BLOCK_SIDES = {2: (1, 64, 64), 3: (16, 16, 16)}
"""Layers, rows and columns of the blocks of an image and of a volume. In the rounds of EAGER only points of one block
join, so that blocks are independent of each other."""

DWARF, DWARF_RATIO = 16, 1.25
"""After these rounds so does a region that is DWARF times smaller than its neighbour, with the ratio DWARF_RATIO. Else
thousands of dots would join their background one a round."""

COLOR_STEP = SCALE // 128
"""One step of 8 bits among the colours that the tree compares."""

TREE_PUSH = 3 * 2**FRACTION // 2
"""Their saturation, 1.5 times; more follows objects better and explains less of the colours (docs/superpixels.md)."""


FINER = 2
"""With two sweeps of refinement or more, the first is of FINER times the regions, of which a second tree then joins
neighbours: their borders are better, and so are the choices. (docs/experiments/superpixels.md)"""


MOST_PULL = 1000.0
"""From λ = 1 on, sweeps compare what the tree compares, positions too, with a pixel as at most so many steps of 8 bits:
no two colours are so far apart."""


def finer_count(count: int, sweeps: int) -> int:
    """The number of regions before refinement."""
    return FINER * count if sweeps > 1 else count


def tree_weights(bands: int, compactness: float) -> tuple[float, ...]:
    """w_c of the tree: colours count in steps of 8 bits, and rows and columns λ times; grey counts as RGB."""
    return ((1 / COLOR_STEP**2,) * (3 if bands == 1 else bands) + (compactness * compactness,) * 2)
