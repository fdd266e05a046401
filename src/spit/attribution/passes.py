"""What the methods share that ask a model about an image many times."""

import hashlib
from typing import Any

import torch
from torch import Tensor

from spit.images import quantize
from spit.options import Options


def config_of_passes(method: Options) -> dict[str, Any]:
    """Everything that a map depends on beside model and image; how its passes are divided and told is not among it."""
    return {name: value for name, value in method.to_dict().items() if name not in ("batch", "progress")}


def image_generator(image: Tensor, seed: int) -> torch.Generator:
    """A generator on the CPU that depends on an image's 8-bit pixels and a seed alone."""
    pixels = quantize(image[None])[0].contiguous().cpu().numpy()
    digest = hashlib.blake2b(repr((seed, pixels.shape)).encode() + pixels.tobytes(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little", signed=True))
