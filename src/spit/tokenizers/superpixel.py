"""Hierarchical superpixels: the tokenizer of SPiT (§2.2, App. B)."""

from dataclasses import dataclass

from torch import Tensor

from spit import kernels
from spit.images import Images, image_blocks, quantize
from spit.kernels.options import Features, SuperpixelOptions
from spit.kernels.rules import Rules
from spit.options import documented
from spit.partition import Hierarchy, Partition
from spit.tokenizers.base import Tokenizer
from spit.tokenizers.preprocess import coarse, published_features, superpixel_features
from spit.tokens import offsets_of


@documented
@dataclass(frozen=True)
class SuperpixelTokenizer(SuperpixelOptions, Tokenizer):
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

    def partition(self, block: Tensor) -> Partition:
        if self.preset == "published":
            part = self._levels(block)[-1]
        else:
            pixels, options = (quantize(block),), (self.features, self.rules())
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
        return Hierarchy._of(features, kernels.superpixels(features, self.rules()))

    def refined(self, part: Partition, block: Tensor) -> Partition:
        """A partition of a ``(B, C, H, W)`` block after ``refine`` sweeps of boundary moves."""
        if self.refine == 0:
            return part
        if part.blocks[0].shape != (len(block), *block.shape[2:]):
            raise ValueError(f"expected the partition of a block of shape {tuple(block.shape)}, got {part!r}")
        labels = kernels.refine(part.blocks[0], part.offsets, quantize(block), self.refine)
        return Partition._trusted((labels,), part.offsets)



def _cut(pixels: tuple[Tensor, ...], options: tuple[Features, Rules]) -> tuple[Tensor, ...]:
    """Labels and offsets of a batch of 8-bit images."""
    features, rules = options
    labels, counts = kernels.superpixel_labels(superpixel_features(pixels[0], features), rules)
    return labels, offsets_of(counts)
