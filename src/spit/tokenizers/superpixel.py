"""Hierarchical superpixels: the tokenizer of SPiT (§2.2, App. B)."""

from dataclasses import dataclass
from math import inf
from typing import Literal

from torch import Tensor

from spit import kernels
from spit.images import Images, image_blocks, quantize
from spit.kernels.rules import Preset, Rules, Similarity
from spit.options import documented, fix, option
from spit.partition import Hierarchy, Partition
from spit.tokenizers.base import Tokenizer
from spit.tokenizers.preprocess import Features, coarse, published_features, superpixel_features
from spit.tokens import offsets_of

SelfLoop = Literal["clipped", "paper", "published", "none"]

_LOOPS: dict[SelfLoop, tuple[float, float | None]] = {  # loop_mean and loop_clip of Rules
    "clipped": (1.0, 0.75),
    "paper": (1.0, inf),
    "published": (2.0, 0.75),
    "none": (1.0, None),
}
_PUBLISHED = {"features": "published", "similarity": "cosine", "self_loop": "published", "max_tokens": None}


@documented
@dataclass(frozen=True)
class SuperpixelTokenizer(Tokenizer):
    """Superpixels by parallel edge contraction: at each level every region joins its best neighbour.

    Regions are complete, 4-connected and nested, and the same bit for bit alone or in any batch, on every backend. A
    region has about 4^levels pixels (the count law of App. B), so 4 levels compare with square patches of 16.

    Example:
        >>> import spit, torch
        >>> image = torch.linspace(0, 1, 3 * 32 * 32).view(3, 32, 32)
        >>> part = spit.SuperpixelTokenizer(levels=2, max_tokens=40)(image)
        >>> int(part.counts[0]) <= 40
        True
    """

    levels: int = option(4, "Levels T of the hierarchy", least=1, most=64)
    compactness: float = option(
        0.0, "Weight λ of the bounding box's density beside similarity; 1 gives the most compact regions. The "
             "release's λ of 0.1 (preset=published) is 0.4706 with preset=spit", least=0, most=1)
    merge_threshold: float = option(
        0.0, "After the last level, join neighbours whose mean features, in [-1, 1], are closer than this Euclidean "
             "distance (App. B), or with preset=published by this range over the channels; 0 joins none", least=0,
        most=1e6)
    max_tokens: int | None = option(
        None, "Exact upper bound on the regions of an image; the most similar neighbours are joined until it holds "
              "(default: no bound)", least=1)
    refine: int = option(
        0, "Refinement sweeps: boundary pixels move to the neighbouring region where that lowers the squared error of "
           "the colours; more than three add little", least=0, most=1000)
    features: Features = option(
        "paper", "Colour features that regions are compared by, see superpixel_features")
    similarity: Similarity = option(
        "cosine", "Similarity of two regions: cosine; euclidean, minus the distance; variance, minus the growth of the "
                  "squared error when they join")
    self_loop: SelfLoop = option(
        "clipped", "Weight of staying alone, (size - mean) / std of the level's region sizes: clipped to ±0.75; paper, "
                   "not clipped (about 1.8 times the regions); published, clipped and against twice the mean; none")
    preset: Preset = option(
        "spit", "Rules of contraction: spit, or published, those of the authors' release (docs/published.md), which "
                "fix features, similarity and self_loop and have no max_tokens")

    def __post_init__(self) -> None:
        if self.preset == "published":
            fix(self, _PUBLISHED, "preset='published'")
        super().__post_init__()

    def partition(self, block: Tensor) -> Partition:
        if self.preset == "published":
            part = self._levels(block)[-1]
        else:
            pixels, options = (quantize(block),), (self.features, self._rules())
            whole = self.features != "published" and self.max_tokens is None  # nothing there waits for the device
            labels, offsets = kernels.recorded(_cut, pixels, options) if whole else _cut(pixels, options)
            part = Partition._trusted((labels,), offsets)
        return self.refined(part, block)

    def hierarchy(self, images: Images, *, threads: int | None = None) -> Hierarchy:
        """All levels: ``hier[0]`` is single pixels, ``hier[t]`` is π^(t), ``hier[-1]`` is ``self(images)``.

        The final merge and the bound on the count, if set, add levels after π^(T). Refinement moves the boundaries of
        the last level; the levels below are cut along them, so that all stay nested.

        Args:
            images, threads: as for ``self(images)``.
        """
        with kernels.threads(threads):
            return Hierarchy.cat([self._hierarchy(block) for block in image_blocks(images)])

    def _hierarchy(self, block: Tensor) -> Hierarchy:
        levels = self._levels(block)
        return levels if self.refine == 0 else levels.below(self.refined(levels[-1], block))

    def _levels(self, block: Tensor) -> Hierarchy:
        """The hierarchy before refinement."""
        if self.preset == "published":
            fine = published_features(block)
            return Hierarchy._of(coarse(fine), kernels.published_superpixels(
                fine, self.levels, self.compactness, self.merge_threshold))
        features = superpixel_features(block, self.features)
        return Hierarchy._of(features, kernels.superpixels(features, self._rules()))

    def refined(self, part: Partition, block: Tensor) -> Partition:
        """A partition of a ``(B, C, H, W)`` block after ``refine`` sweeps of boundary moves."""
        if self.refine == 0:
            return part
        if part.blocks[0].shape != (len(block), *block.shape[2:]):
            raise ValueError(f"expected the partition of a block of shape {tuple(block.shape)}, got {part!r}")
        labels = kernels.refine(part.blocks[0], part.offsets, quantize(block), self.refine)
        return Partition._trusted((labels,), part.offsets)

    def _rules(self) -> Rules:
        # Kernels are compiled for floats; an option may be an int.
        return Rules(self.levels, self.similarity, *_LOOPS[self.self_loop], float(self.compactness),
                     float(self.merge_threshold), self.max_tokens)


def _cut(pixels: tuple[Tensor, ...], options: tuple[Features, Rules]) -> tuple[Tensor, ...]:
    """Labels and offsets of a batch of 8-bit images."""
    features, rules = options
    labels, counts = kernels.superpixel_labels(superpixel_features(pixels[0], features), rules)
    return labels, offsets_of(counts)
