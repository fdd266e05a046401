"""What every tokenizer τ is: a frozen set of options that turns images into a Partition."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from spit.images import Images, image_blocks
from spit.interruption import may_stop
from spit.options import Options
from spit.partition import Partition
from spit.parts import check_partition


@dataclass(frozen=True)
class Tokenizer(Options, ABC):
    """τ: image → partition. Subclasses implement :meth:`partition` for a block of images of one size.

    Example:
        >>> import spit, torch
        >>> tokenizer = spit.PatchTokenizer(16)
        >>> tokenizer(torch.zeros(2, 3, 64, 48))
        Partition(2 images of 64×48, regions [12, 12])
    """

    family: ClassVar[str] = ""
    """The row of the paper's tables that these tokens belong to: patch, voronoi or superpixel; empty for others."""

    def __call__(self, images: Images) -> Partition:
        """Partition every image. The result for an image never depends on the others.

        Args:
            images: ``(B, C, H, W)``, one ``(C, H, W)``, or a list of ``(C, H, W)`` of different sizes; uint8, or
                floats in [0, 1]. They are not modified.
        """
        return Partition.cat([self._cut(block) for block in image_blocks(images)])

    def _cut(self, block: Tensor) -> Partition:
        may_stop()
        partition = self.partition(block)
        check_partition(partition, [block], f"the tokenizer {type(self).__name__} returned it")
        return partition

    @abstractmethod
    def partition(self, block: Tensor) -> Partition:
        """The partition of a checked ``(B, C, H, W)`` block."""

    def partition_at(self, block: Tensor, count: int) -> Partition:
        """The partition of a checked block with exactly ``count`` regions in each image, if the tokenizer can.

        ``spit evaluate swap --equal-counts`` compares tokenizers that define it.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot make a given number of regions")

    def config(self) -> dict[str, Any]:
        """The options that make this tokenizer again."""
        return self.to_dict()
