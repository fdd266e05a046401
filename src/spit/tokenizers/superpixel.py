"""Hierarchical superpixels: the tokenizer of SPiT (§2.2, App. B)."""

from dataclasses import dataclass
from math import inf, isfinite
from typing import ClassVar, Literal, get_args

from torch import Tensor

from spit import kernels
from spit.images import Images, image_blocks, quantize
from spit.kernels.rules import Rules, Similarity
from spit.partition import Hierarchy, Partition
from spit.tokenizers.base import Tokenizer, check_whole
from spit.tokenizers.preprocess import Features, superpixel_features

SelfLoop = Literal["clipped", "paper", "published", "none"]

_LOOPS: dict[SelfLoop, tuple[float, float | None]] = {
    "clipped": (1.0, 0.75),
    "paper": (1.0, inf),
    "published": (2.0, 0.75),
    "none": (1.0, None),
}


@dataclass(frozen=True)
class SuperpixelTokenizer(Tokenizer):
    """Superpixels by parallel edge contraction: at each level every region joins its best neighbour.

    Regions are complete, 4-connected and nested, and the same bit for bit alone or in any batch, on
    every backend. About 4^levels pixels fall to a region (the count law of App. B), so 4 levels
    compare with square patches of 16.

    Args:
        levels: T, 1 or more.
        compactness: λ in [0, 1]: how much the density of the bounding box counts beside similarity.
        merge_threshold: after the last level, join all neighbours whose mean features are closer
            than this Euclidean distance (App. B); features range over [−1, 1]. 0 joins nothing.
        max_tokens: an exact upper bound on the regions of an image; the most alike neighbours are
            joined until it holds. None is no bound.
        refine: after the hierarchy, sweeps in which boundary pixels move to the neighbouring region where
            that lowers the squared error of the image's colours, see :func:`spit.kernels.refine`.
        features: ``"paper"``, ``"published"`` or ``"saturated"``, see :func:`superpixel_features`.
        similarity: ``"cosine"``; ``"euclidean"`` for minus the distance; ``"variance"`` for minus the
            growth of the squared error when two regions join.
        self_loop: weight of staying alone, (size − mean) / std of the sizes at that level:
            ``"clipped"`` to ±0.75; ``"paper"``, without the clip (about 1.8 times the regions);
            ``"published"``, clipped and against twice the mean; ``"none"``.
    """

    name: ClassVar[str] = "superpixel"

    levels: int = 4
    compactness: float = 0.0
    merge_threshold: float = 0.0
    max_tokens: int | None = None
    refine: int = 0
    features: Features = "paper"
    similarity: Similarity = "cosine"
    self_loop: SelfLoop = "clipped"

    def __post_init__(self) -> None:
        check_whole("levels", self.levels, 1)
        if not 0 <= self.compactness <= 1:
            raise ValueError(f"expected compactness in [0, 1], got {self.compactness}")
        if not (self.merge_threshold >= 0 and isfinite(self.merge_threshold)):
            raise ValueError(f"expected a merge_threshold of 0 or more, got {self.merge_threshold}")
        if self.max_tokens is not None:
            check_whole("max_tokens", self.max_tokens, 1)
        check_whole("refine", self.refine, 0)
        for name, known in (("features", Features), ("similarity", Similarity), ("self_loop", SelfLoop)):
            if getattr(self, name) not in get_args(known):
                raise ValueError(f"expected {name} to be one of {', '.join(get_args(known))}, "
                                 f"got {getattr(self, name)!r}")

    def partition(self, block: Tensor) -> Partition:
        labels, counts = kernels.superpixel_labels(superpixel_features(block, self.features), self._rules())
        return self.refined(Partition.of(labels, counts), block)

    def hierarchy(self, images: Images) -> Hierarchy:
        """All levels: ``hier[0]`` is single pixels, ``hier[t]`` is π^(t), ``hier[-1]`` is ``self(images)``.

        The final merge and the bound on the count, where asked for, are levels after π^(T). Refinement
        moves the boundaries of the last level; the levels below it are cut along them, so that all stay
        nested.
        """
        return Hierarchy.cat([self._hierarchy(block) for block in image_blocks(images)])

    def _hierarchy(self, block: Tensor) -> Hierarchy:
        features = superpixel_features(block, self.features)
        levels = Hierarchy.of(features, kernels.superpixels(features, self._rules()))
        return levels if self.refine == 0 else levels.below(self.refined(levels[-1], block))

    def refined(self, part: Partition, block: Tensor) -> Partition:
        """A partition of a ``(B, C, H, W)`` block after ``refine`` sweeps of boundary moves."""
        if self.refine == 0:
            return part
        return Partition((kernels.refine(part.blocks[0], part.offsets, quantize(block), self.refine),), part.offsets)

    def _rules(self) -> Rules:
        loop_mean, loop_clip = _LOOPS[self.self_loop]
        return Rules(
            levels=self.levels,
            similarity=self.similarity,
            loop_mean=loop_mean,
            loop_clip=loop_clip,
            compactness=self.compactness,
            merge_threshold=self.merge_threshold,
            max_tokens=self.max_tokens,
        )
