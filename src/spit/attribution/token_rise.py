"""RISE (Petsiuk, Das & Saenko, 2018) by absence: how likely the class is where a token is present."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spit.attribution.lime import image_generator
from spit.attribution.relevance import class_relevance
from spit.attribution.removal import Subsets, TokenRemoval, random_cells, token_centers
from spit.forward_pass import ForwardPass
from spit.options import documented, option, same

Slopes = Callable[[Tensor], Tensor]  # subsets (S, N) to slopes (S, N), as Subsets.slopes


@documented
@dataclass(frozen=True)
class TokenRise(TokenRemoval):
    """``E[Φ | v present] − E[Φ | v absent]`` over random subsets of the tokens, with relevance as a prior.

    RISE scales random grids up to smooth masks and paints the rest black. Here tokens are divided into random cells
    (:func:`~spit.attribution.removal.random_cells`), the cells are dealt into ``parts``, and the model sees each part
    alone. So every token is present in exactly one subset of each division, and a pass has a fifth of the tokens.

    A few hundred passes leave each token's value noisy, and say little on tokens that speak against the class. So more
    is added, all of it smoothed over neighbours and standardised: :class:`~spit.attribution.Relevance`, what the whole
    image would miss; and slopes by presence (:func:`~spit.attribution.presence.presence_slopes`), which have a sign,
    over random halves of the tokens and while tokens are shed (:func:`shed_slopes`). Half of ``samples`` goes to parts,
    a seventh to halves and a twentieth to shedding, where a pass with gradients counts as three. With ``smooth=0,
    prior=0, slopes=0`` values are the differences themselves, and the backbone need not report its attention.

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
    slopes: float = option(0.5, "Weight of the slopes by presence, over halves and while tokens are shed", least=0)

    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        prior = class_relevance(seen, classes)[:, 1:].cpu().double() if self.prior > 0 else None
        asked = zip(seen.images, seen.features, token_centers(seen), classes.tolist(), strict=True)
        found = []
        for index, (image, rows, centers, label) in enumerate(asked):
            ask, random = Subsets(seen.model, rows, label, self.batch, self.progress), image_generator(image, self.seed)
            width = self.smooth * (image[0].numel() / len(rows)) ** 0.5
            value = smoothed(self.values(ask, centers, random), centers, width)
            added = [] if prior is None else [(self.prior, prior[index, : len(rows)])]
            if self.slopes > 0:
                halves = random_halves(centers, max(1, self.samples // 21), self.cells, random)
                shed = shed_slopes(ask.slopes, centers, width, self.samples // 64)
                added += [(self.slopes, mean_slopes(ask.slopes, halves)), (self.slopes, shed)]
            if added:
                value = standardised(value)
                for weight, own in added:
                    value = value + weight * standardised(smoothed(own, centers, width))
            found.append(value)
        return seen.paint(torch.cat(found).float().to(seen.logits.device))

    def values(self, ask: Subsets, centers: Tensor, random: torch.Generator) -> Tensor:
        count = min(self.cells, len(centers))
        parts = min(self.parts, count)
        passes = self.samples // 2 if self.slopes > 0 else self.samples
        cells = random_cells(centers, max(1, passes // parts), self.cells, random)  # (divisions, N)
        part = (torch.rand(len(cells), count, generator=random).argsort(1) % parts).gather(1, cells)
        present = part[:, None] == torch.arange(parts)[:, None]  # (divisions, parts, N)
        answers = ask(present.flatten(0, 1)).cpu().double().view(len(cells), parts)
        own = answers.gather(1, part)
        return (own - (answers.sum(1, keepdim=True) - own) / max(parts - 1, 1)).mean(0)


def random_halves(centers: Tensor, draws: int, cells: int, random: torch.Generator) -> Tensor:
    """Subsets of half of the tokens, rounded up, made of whole cells but for one, ``(draws, N)`` bool."""
    own = random_cells(centers, draws, cells, random)
    order = torch.rand(draws, len(centers), generator=random).gather(1, own).argsort(dim=1, stable=True).argsort(1)
    return order < (len(centers) + 1) // 2


def mean_slopes(slopes: Slopes, present: Tensor) -> Tensor:
    """The mean slope of each token over the subsets that have it, ``(N,)``; 0 if none has."""
    return slopes(present).sum(0) / present.sum(0).clamp(min=1)


def shed_slopes(slopes: Slopes, centers: Tensor, width: float, steps: int) -> Tensor:
    """The sum of the slopes while the tokens of the lowest are shed, an eighth at a step, from all tokens on, ``(N,)``.

    The slope of all tokens at once misses those that stand in for each other. ``width`` smooths the slopes by which
    tokens are shed.
    """
    present = torch.ones(1, len(centers), dtype=torch.bool)
    total = torch.zeros(len(centers), dtype=torch.float64)
    for step in range(1, steps + 1):
        [present_now], found = present, torch.zeros_like(total)
        found[present_now] = smoothed(slopes(present)[0][present_now], centers[present_now], width)
        total += found
        left = len(centers) - step * len(centers) // 8
        kept = found.masked_fill(~present_now, -torch.inf).topk(max(left, 1)).indices
        present = torch.zeros_like(present)
        present[0, kept] = True
    return total


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
