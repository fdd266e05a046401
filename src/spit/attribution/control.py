"""A control for attribution methods: a random value for each token."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spit.forward_pass import ForwardPass
from spit.images import quantize
from spit.options import Options, documented, option


@documented
@dataclass(frozen=True)
class RandomControl(Options):
    """Uniform random values, one for each of the model's tokens.

    They are drawn by token so that occlusion removes regions like those of other methods; random pixels would destroy
    every texture. They depend on the image's pixels and the seed alone.

    Shape:
        one ``(H, W)`` map an image, in [0, 1).

    Example:
        >>> import spit, torch
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.zeros(3, 32, 32), spit.attribution.RandomControl(seed=1)).unique().numel()
        4
    """

    name: ClassVar[str] = "random"
    of_class: ClassVar[bool] = False

    seed: int = option(0, "Seed of the random values")

    config = Options.to_dict

    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        values = [torch.rand(count, generator=image_generator(image, self.seed))
                  for count, image in zip(seen.partition.counts.tolist(), seen.images, strict=True)]
        return seen.paint(torch.cat(values).to(seen.logits.device))


def image_generator(image: Tensor, seed: int) -> torch.Generator:
    """A generator on the CPU that depends on an image's 8-bit pixels and a seed alone.

    Shape:
        image ``(C, H, W)``.
    """
    pixels = quantize(image[None])[0].contiguous().cpu().numpy()
    digest = hashlib.blake2b(repr((seed, pixels.shape)).encode() + pixels.tobytes(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little", signed=True))
