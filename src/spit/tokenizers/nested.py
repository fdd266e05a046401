"""Tokenizers with levels, each nested in the next."""

from abc import abstractmethod

from torch import Tensor

from spit import kernels
from spit.images import Images, image_blocks, quantize
from spit.partition import Hierarchy, Partition
from spit.tokenizers.base import Tokenizer


class NestedTokenizer(Tokenizer):
    """Superpixels by levels of contraction: subclasses implement :meth:`levels_of` and have these options."""

    levels: int
    merge_threshold: float
    refine: int
    family = "superpixel"

    @abstractmethod
    def levels_of(self, block: Tensor) -> Hierarchy:
        """The hierarchy of a checked ``(B, C, H, W)`` block, before refinement."""

    def partition(self, block: Tensor) -> Partition:
        return self.refined(self.levels_of(block)[-1], block)

    def partition_at(self, block: Tensor, count: int) -> Partition:
        """Between two levels, see :meth:`spit.Hierarchy.at`."""
        return self._hierarchy(block).at(count)

    def hierarchy(self, images: Images) -> Hierarchy:
        """All levels: ``hier[0]`` is single pixels, ``hier[t]`` is π^(t), ``hier[-1]`` is ``self(images)``.

        The final merge and the bound on the count, if set, add levels after π^(T). Refinement moves the boundaries of
        the last level; the levels below are cut along them, so that all stay nested.

        Args:
            images: as for ``self(images)``.
        """
        return Hierarchy.cat([self._hierarchy(block) for block in image_blocks(images)])

    def _hierarchy(self, block: Tensor) -> Hierarchy:
        levels = self.levels_of(block)
        return levels if self.refine == 0 else levels.below(self.refined(levels[-1], block))

    def refined(self, part: Partition, block: Tensor) -> Partition:
        """A partition of a ``(B, C, H, W)`` block after ``refine`` sweeps of boundary moves."""
        if self.refine == 0:
            return part
        if part.blocks[0].shape != (len(block), *block.shape[2:]):
            raise ValueError(f"expected the partition of a block of shape {tuple(block.shape)}, got {part!r}")
        labels = kernels.refine(part.blocks[0], part.offsets, quantize(block), self.refine)
        return Partition._trusted((labels,), part.offsets)
