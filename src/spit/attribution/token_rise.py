"""RISE (Petsiuk, Das & Saenko, 2018) by absence: how likely the class is where a token is present."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spit.attribution.removal import Subsets, TokenRemoval, random_cells
from spit.options import documented, option


@documented
@dataclass(frozen=True)
class TokenRise(TokenRemoval):
    """``E[Φ | v present] − E[Φ | v absent]`` over random subsets, in each of which random cells are present.

    RISE scales random grids up to smooth masks and paints the rest black. Here cells of tokens are present or absent,
    see :func:`~spit.attribution.removal.random_cells`. RISE's map is the first term alone; the second removes what the
    chance number of a token's subsets adds. With a quarter of the tokens a pass costs less than a quarter.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import TokenRise
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 32, 32), TokenRise(samples=8), target=3).shape
        torch.Size([1, 32, 32])
    """

    name: ClassVar[str] = "token_rise"

    keep: float = option(0.25, "Probability that a cell is present", above=0, below=1)

    def values(self, ask: Subsets, centers: Tensor, random: torch.Generator) -> Tensor:
        cells = random_cells(centers, self.samples, self.cells, random)  # (samples, N)
        shown = torch.rand(self.samples, min(self.cells, len(centers)), generator=random) < self.keep
        present = shown.gather(1, cells)
        answers = ask(present).cpu().double()[:, None]
        with_it, without = ((answers * some).sum(0) / some.sum(0).clamp(min=1) for some in (present, ~present))
        return with_it - without
