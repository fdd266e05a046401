"""Shapley values (1953) of tokens by sampled orders, with absence for absence."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spit.attribution.removal import Subsets, TokenRemoval, random_cells
from spit.options import documented, option, same

LEAST = 4  # pairs of orders before the standard error is believed


@documented
@dataclass(frozen=True)
class TokenShapley(TokenRemoval):
    """The mean gain of the class's probability when a token joins those that came before it in a random order.

    Orders are of cells of tokens, divided anew each time (:func:`~spit.attribution.removal.random_cells`); the tokens
    of a cell share its gain equally, so values are smoothed over neighbours. With as many cells as tokens they are the
    Shapley values themselves, without bias. In either case they add up to ``Φ(x) − Φ(nothing)`` after every order.

    Every order is followed by its reverse (antithetic sampling): a cell that came early comes late, which removes most
    of the error that the place in the order makes. Sampling stops as soon as the standard error of the values, over
    pairs of orders and root mean square over the tokens, is below ``tolerance`` times their standard deviation over the
    tokens, or when the next pair would exceed ``samples`` passes.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import TokenShapley
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 32, 32), TokenShapley(samples=64), target=3).shape
        torch.Size([1, 32, 32])
    """

    name: ClassVar[str] = "token_shapley"

    cells: int = same(TokenRemoval, "cells", 16)
    tolerance: float = option(0.2, "Standard error to stop at, over the spread of the values; 0 uses all samples",
                              least=0)

    def values(self, ask: Subsets, centers: Tensor, random: torch.Generator) -> Tensor:
        whole = torch.tensor([[False], [True]]).expand(2, len(centers))
        nothing, everything = ask(whole).tolist()
        pairs: list[Tensor] = []
        while True:
            pairs.append(self._pair(ask, centers, random, nothing, everything))
            found = torch.stack(pairs)
            value = found.mean(0)
            passes = ask.asked // len(pairs)  # of a pair, nearly
            if ask.asked + passes > self.samples or (
                    len(pairs) >= LEAST and standard_error(found) <= self.tolerance * float(value.std(correction=0))):
                return value

    def _pair(self, ask: Subsets, centers: Tensor, random: torch.Generator, nothing: float, everything: float,
              ) -> Tensor:
        """The gain of each token in an order of cells and in its reverse, ``(N,)``, the mean of both."""
        [cells], count = random_cells(centers, 1, self.cells, random), min(self.cells, len(centers))
        place = torch.rand(count, generator=random).argsort()[cells]  # of each token's cell in the order
        first = place < torch.arange(1, count)[:, None]  # (count − 1, N): the first 1, 2, … cells
        answers = ask(torch.cat([first, ~first])).cpu().double()
        ends = torch.tensor([[nothing], [everything]], dtype=torch.float64)
        forward, backward = answers.view(2, -1)
        gains = torch.cat([ends[0], forward, ends[1]]).diff()
        gains = gains - torch.cat([ends[1], backward, ends[0]]).diff()  # Φ(last k) falls as the first cells leave
        sizes = torch.bincount(cells, minlength=count)
        return (gains[place] / sizes[cells]) / 2


def standard_error(found: Tensor) -> float:
    """The standard error of the mean over rows, root mean square over columns, ``(n, N)`` with n of at least 2."""
    return float((found.var(0) / len(found)).mean().sqrt())
