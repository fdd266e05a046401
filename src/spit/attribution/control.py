"""A control for attribution methods: every token gets a random value."""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.forward_pass import ForwardPass
from spit.images import quantize
from spit.options import Options, documented, option


@documented
@dataclass(frozen=True)
class RandomControl(Options):
    """Uniform random values, one for each of the model's tokens.

    Values are drawn by token, not by pixel, so that occlusion has the same grain as an attribution's: single random
    pixels would destroy every texture. They depend on the image's pixels and the seed alone.

    Shape:
        one ``(H, W)`` map an image, in [0, 1).
    """

    name: ClassVar[str] = "random"
    of_class: ClassVar[bool] = False

    seed: int = option(0, "Another seed gives other values")

    def config(self) -> dict[str, Any]:
        """All that the map depends on beside model and image."""
        return self.to_dict()

    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        values = [torch.rand(count, generator=image_generator(image, self.seed))
                  for count, image in zip(seen.partition.counts.tolist(), seen.images, strict=True)]
        return seen.paint(torch.cat(values).to(seen.logits.device))


def image_generator(image: Tensor, seed: int) -> torch.Generator:
    """Random numbers on the CPU that depend on an image's 8-bit pixels and a seed alone.

    Shape:
        image ``(C, H, W)``.
    """
    pixels = quantize(image[None])[0].contiguous().cpu().numpy()
    digest = hashlib.blake2b(repr((seed, pixels.shape)).encode() + pixels.tobytes(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little", signed=True))
