"""What every tokenizer τ is: a frozen set of options that turns images into a Partition."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from torch import Tensor

from spit.images import Images, image_blocks
from spit.partition import Partition


@dataclass(frozen=True)
class Tokenizer(ABC):
    """τ: image → partition. Subclasses partition one block of images of one size."""

    name: ClassVar[str]

    def __call__(self, images: Images) -> Partition:
        """Partition every image; the answer for one image never depends on the others.

        Args:
            images: ``(B, C, H, W)``, one ``(C, H, W)``, or a list of ``(C, H, W)`` of different
                sizes; uint8, or floats in [0, 1]. They are not modified.
        """
        return Partition.cat([self.partition(block) for block in image_blocks(images)])

    @abstractmethod
    def partition(self, block: Tensor) -> Partition:
        """The partition of a checked ``(B, C, H, W)`` block."""

    def config(self) -> dict[str, Any]:
        """The options that make this tokenizer again."""
        return asdict(self)


def check_whole(name: str, value: object, least: int | None = None) -> None:
    """Refuse what is not an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected a whole number for {name}, got {value!r}")
    if least is not None and value < least:
        raise ValueError(f"expected {name} of at least {least}, got {value}")
