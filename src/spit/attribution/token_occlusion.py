"""Occlusion (Zeiler & Fergus, 2014) by absence: what the class loses when neighbouring tokens are left out."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spit.attribution.removal import Subsets, TokenRemoval, random_cells
from spit.options import documented


@documented
@dataclass(frozen=True)
class TokenOcclusion(TokenRemoval):
    """``Φ(x) − Φ(x without the cell of v)``, the mean over several divisions of the tokens into cells.

    Each division leaves out every one of its cells once, so there are ``samples // cells`` divisions, at least one. An
    image of fewer tokens than ``cells`` has each of them left out alone.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import TokenOcclusion
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 32, 32), TokenOcclusion(samples=8, cells=4), target=3).shape
        torch.Size([1, 32, 32])
    """

    name: ClassVar[str] = "token_occlusion"

    def values(self, ask: Subsets, centers: Tensor, random: torch.Generator) -> Tensor:
        count = min(self.cells, len(centers))
        cells = random_cells(centers, max(1, self.samples // count), self.cells, random)  # (divisions, N)
        present = cells[:, None] != torch.arange(count)[:, None]  # (divisions, cells, N)
        left = ask(present.flatten(0, 1)).cpu().view(-1, count)
        return float(ask(torch.ones(1, len(centers), dtype=torch.bool))) - left.gather(1, cells).mean(0)
