"""RISE (Petsiuk, Das & Saenko, 2018) by absence: how likely the class is where a token is present."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spit.attribution.relevance import class_relevance
from spit.attribution.removal import Subsets, TokenRemoval, random_cells, token_centers
from spit.forward_pass import ForwardPass
from spit.options import documented, option, same


@documented
@dataclass(frozen=True)
class TokenRise(TokenRemoval):
    """``E[Φ | v present] − E[Φ | v absent]`` over random subsets of the tokens, with relevance as a prior.

    RISE scales random grids up to smooth masks and paints the rest black. Here tokens are divided into random cells
    (:func:`~spit.attribution.removal.random_cells`), the cells are dealt into ``parts``, and the model sees each part
    alone. So every token is present in exactly one subset of each division, and a pass has a fifth of the tokens.

    A few hundred passes leave each token's value noisy. Two options make up for that: values are smoothed over
    neighbours, and :class:`~spit.attribution.Relevance`, smoothed alike, is added as a prior, both standardised.
    Subsets tell what is enough for the class, relevance what the whole image would miss. With ``smooth=0, prior=0``
    values are the differences themselves, and the backbone need not report its attention.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import TokenRise
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 32, 32), TokenRise(samples=8), target=3).shape
        torch.Size([1, 32, 32])
    """

    name: ClassVar[str] = "token_rise"

    cells: int = same(TokenRemoval, "cells", 20)
    parts: int = option(5, "Parts that the cells are dealt into; the model sees each alone", least=2)
    smooth: float = option(0.8, "Deviation of the Gaussian that values are smoothed with, in mean widths of a token",
                           least=0)
    prior: float = option(0.5, "Weight of relevance, which is added", least=0)

    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        prior = class_relevance(seen, classes)[:, 1:].cpu().double() if self.prior > 0 else None
        found = []
        for index, (own, centers, image) in enumerate(zip(
                self.token_values(seen, classes), token_centers(seen), seen.images, strict=True)):
            width = self.smooth * (image[0].numel() / len(own)) ** 0.5
            value = smoothed(own, centers, width)
            if prior is not None:
                known = smoothed(prior[index, : len(own)], centers, width)
                value = standardised(value) + self.prior * standardised(known)
            found.append(value)
        return seen.paint(torch.cat(found).float().to(seen.logits.device))

    def values(self, ask: Subsets, centers: Tensor, random: torch.Generator) -> Tensor:
        count = min(self.cells, len(centers))
        parts = min(self.parts, count)
        cells = random_cells(centers, max(1, self.samples // parts), self.cells, random)  # (divisions, N)
        part = (torch.rand(len(cells), count, generator=random).argsort(1) % parts).gather(1, cells)
        present = part[:, None] == torch.arange(parts)[:, None]  # (divisions, parts, N)
        answers = ask(present.flatten(0, 1)).cpu().double().view(len(cells), parts)
        own = answers.gather(1, part)
        return (own - (answers.sum(1, keepdim=True) - own) / max(parts - 1, 1)).mean(0)


def smoothed(values: Tensor, centers: Tensor, width: float) -> Tensor:
    """The mean over neighbours, weighted by a Gaussian of this deviation in pixels; 0 changes nothing.

    Shape:
        values ``(N,)`` and centers ``(N, 2)`` to ``(N,)``.
    """
    if width == 0:
        return values
    weights = torch.exp(-torch.cdist(centers, centers).square() / (2 * width**2))
    return weights @ values.to(weights) / weights.sum(1)


def standardised(values: Tensor) -> Tensor:
    """Mean 0 and standard deviation 1; zeros if all are equal."""
    spread = values.std(correction=0)
    return (values - values.mean()) / spread if float(spread) > 0 else torch.zeros_like(values)
