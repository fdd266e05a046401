"""Square patches: the canonical ViT tokenizer τ* (App. A)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spit.kernels.options import PatchOptions
from spit.options import documented
from spit.partition import Partition
from spit.tokenizers.base import Tokenizer
from spit.tokens import offsets_of


@documented
@dataclass(frozen=True)
class PatchTokenizer(PatchOptions, Tokenizer):
    """Squares of ``size`` pixels, ⌈H/ρ⌉ · ⌈W/ρ⌉ of them.

    Where the image ends inside a square, the region has the pixels that exist, and its frame is still the whole
    square, so that φ sees the zero padding of App. A.

    Example:
        >>> import spit, torch
        >>> spit.PatchTokenizer(16)(torch.zeros(1, 3, 32, 40)).labels[0, ::16, ::16]
        tensor([[0, 1, 2],
                [3, 4, 5]], dtype=torch.int32)
    """

    family = "patch"

    def partition(self, block: Tensor) -> Partition:
        batch, _, height, width = block.shape
        rows, columns = -(-height // self.size), -(-width // self.size)
        row = torch.arange(height, device=block.device, dtype=torch.int32) // self.size
        column = torch.arange(width, device=block.device, dtype=torch.int32) // self.size
        labels = row[:, None] * columns + column  # (H, W)
        corner = torch.cartesian_prod(
            torch.arange(rows, device=block.device, dtype=torch.int32),
            torch.arange(columns, device=block.device, dtype=torch.int32),
        ) * self.size  # (N, 2)
        frames = torch.cat([corner, corner + self.size], dim=1)
        counts = torch.full((batch,), rows * columns, device=block.device)
        return Partition._trusted((labels.repeat(batch, 1, 1),), offsets_of(counts), frames.repeat(batch, 1))
