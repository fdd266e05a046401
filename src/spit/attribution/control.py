"""A control that knows nothing: every token a random value."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.images import quantize
from spit.model import SpitModel


@dataclass(frozen=True)
class RandomControl:
    """Uniform random values, one for each of the model's tokens.

    By token and not by pixel, so that what is occluded has the same grain as an attribution's: single
    random pixels would destroy every texture and be a control of something else. The values depend on the
    image's pixels and the seed alone.

    Shape:
        images ``(B, C, H, W)`` to ``(B, H, W)`` in [0, 1).
    """

    name: ClassVar[str] = "random"
    of_class: ClassVar[bool] = False
    seed: int = 0

    def config(self) -> dict[str, Any]:
        """All that the map depends on beside model and image."""
        return asdict(self)

    @torch.no_grad()
    def __call__(self, model: SpitModel, images: Tensor, target: Tensor | None = None) -> Tensor:
        partition = model.tokenizer(images)
        values = [torch.rand(count, generator=image_generator(image, self.seed))
                  for count, image in zip(partition.counts.tolist(), images, strict=True)]
        painted: Any = partition.paint(torch.cat(values).to(images.device))
        return painted  # type: ignore[no-any-return]


def image_generator(image: Tensor, seed: int) -> torch.Generator:
    """Random numbers on the CPU that depend on an image's 8-bit pixels and a seed, and on nothing else.

    Shape:
        image ``(C, H, W)``.
    """
    pixels = quantize(image[None])[0].contiguous().cpu().numpy()
    digest = hashlib.blake2b(repr((seed, pixels.shape)).encode() + pixels.tobytes(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little", signed=True))
