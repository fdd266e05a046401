"""How likely a class is where a token is present, after RISE (Petsiuk, Das & Saenko, 2018), by absence."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from spit.attribution.absence import image_tokens
from spit.attribution.flow import class_row
from spit.attribution.passes import config_of_passes, image_generator
from spit.attribution.regression import regress
from spit.attribution.relevance import layer_relevance
from spit.attribution.removal import BACKWARD, Subsets, layer_slopes, log_probability
from spit.forward_pass import ForwardPass
from spit.interruption import may_stop
from spit.options import Options, documented, option


@documented
@dataclass(frozen=True)
class TokenRise(Options):
    """What a token adds to the probability in random subsets, with relevance and slopes by presence added.

    RISE scales random grids up to smooth masks and paints the rest black. Here tokens are divided into random cells
    (:func:`random_cells`), the cells are dealt into parts of equal size, and the model sees
    each part alone: a fifth of the tokens, at about a fifth of the cost. Values follow by regression
    (:func:`~spit.attribution.regression.regress`). They tell what is enough for the class, not what counts against it.

    So more is added, standardised and smoothed over neighbours: :class:`~spit.attribution.Relevance` of the
    log-probability, what the whole image would miss; and slopes by presence
    (:meth:`~spit.attribution.removal.Subsets.slopes`), which have a sign, of all tokens and of random halves: two
    halves for every hundred ``samples``. A pass with gradients counts as three.
    With ``prior=0, slopes=0`` the backbone need not report its attention.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import TokenRise
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 32, 32), TokenRise(samples=8), target=3).shape
        torch.Size([1, 32, 32])
    """

    name: ClassVar[str] = "token_rise"
    of_class: ClassVar[bool] = True

    samples: int = option(256, "Subsets of the tokens an image, each a forward pass of the tokens it has", least=1)
    cells: int = option(20, "Random cells that tokens are divided into, to be left out together", least=2)
    seed: int = option(0, "Seed of the cells and subsets")
    batch: int | None = option(None, "Subsets in a forward pass (default: 32, or 512 on a GPU)", least=1)
    parts: int = option(5, "Parts that the cells are dealt into; the model sees each alone", least=2)
    smooth: float = option(0.8, "Deviation of the Gaussian that values are smoothed with, in mean widths of a token",
                           least=0)
    prior: float = option(0.5, "Weight of relevance, which is added", least=0)
    slopes: float = option(0.5, "Weight of the slopes by presence, of all tokens and of halves", least=0)
    progress: Callable[[int], None] = field(default=may_stop, compare=False, repr=False)

    config = config_of_passes

    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        weights = (self.prior, self.slopes)
        whole = whole_image(seen, classes) if any(weights) else [()] * len(seen.images)
        asked = zip(seen.images, image_tokens(seen), token_centers(seen), classes.tolist(), whole, strict=True)
        found = []
        for image, tokens, centers, label, values in asked:
            ask = Subsets(seen.model, tokens, label, self.batch, self.progress)
            random = image_generator(image, self.seed)
            value = self.values(ask, centers, random)
            added = [*zip(weights, values, strict=False)]
            if self.slopes > 0 and self.halves > 0:
                present = random_parts(centers, self.halves, self.cells, 2, random).flatten(0, 1)
                added.append((self.slopes, mean_slopes(ask.slopes(present), present)))
            for weight, own in added:
                value = value + weight * standardised(smoothed(own, centers, self.width(centers)))
            found.append(value)
        return seen.paint(torch.cat(found).float().to(seen.logits.device))

    def values(self, ask: Subsets, centers: Tensor, random: torch.Generator) -> Tensor:
        """The value of each token by regression, ``(N,)``.

        Args:
            ask: the probability of the class for any subset.
            centers: of the tokens, in pixels, ``(N, 2)`` float64 on the CPU.
            random: a generator that depends on the image and the seed.
        """
        passes = self.samples - BACKWARD * (1 + 2 * self.halves)  # with gradients: all tokens, and halves
        draws = max(1, passes // (2 * self.parts))  # for each number of cells
        answers = []
        for cells in (self.cells, 2 * self.cells):
            present = random_parts(centers, draws, cells, self.parts, random).flatten(0, 1)
            answers.append((present, ask(present).cpu()))
        return standardised(regress(answers, centers, self.width(centers)))

    @property
    def halves(self) -> int:
        """How often the tokens are cut into two halves whose slopes are taken."""
        return self.samples // 100

    def width(self, centers: Tensor) -> float:
        """``smooth`` in pixels."""
        return self.smooth * token_width(centers)


def whole_image(seen: ForwardPass, classes: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Relevance and the slopes by presence of each image's tokens, float64 on the CPU, from one pass with gradients.

    Both are of the class's log-probability, so relevance too tells what speaks for this class and not for others.
    """
    trace = seen.trace(gradients=True)
    relevant, slopes = [], []
    with torch.no_grad():
        for layer in trace.layers(log_probability(classes)):
            relevant.append(layer_relevance(*layer))
            slopes.append(layer_slopes(*layer))
    rows = class_row(relevant, 1, 1, "left", seen.read_rows(trace)).cpu().double()
    parts = torch.stack(slopes).sum(0).cpu().double().split(list(trace.spans.counts))
    first = seen.model.prefix
    return [(row[first : len(part)], part[first:]) for row, part in zip(rows, parts, strict=True)]


def token_centers(seen: ForwardPass) -> tuple[Tensor, ...]:
    """The centres of the boxes of each image's tokens, in pixels, ``(N, 2)`` float64 each, on the CPU."""
    boxes = seen.partition.boxes().cpu().double()
    centers: tuple[Tensor, ...] = ((boxes[:, :2] + boxes[:, 2:]) / 2).split(seen.partition.counts.tolist())
    return centers


def random_cells(centers: Tensor, draws: int, cells: int, random: torch.Generator) -> Tensor:
    """Divide the tokens into random cells, anew in each draw: every token goes to the nearest of some tokens.

    A single token of hundreds is hardly missed, since its neighbours show the same. Cells are missed. As they differ
    from draw to draw, the mean over draws still tells tokens apart.

    Shape:
        centers ``(N, 2)`` to ``(draws, N)`` int64, cells numbered from 0; at most N cells.
    """
    count = min(cells, len(centers))
    seeds = torch.rand(draws, len(centers), generator=random).argsort(1)[:, :count]  # (draws, count)
    return torch.cat([torch.cdist(centers.expand(len(own), -1, -1), centers[own]).argmin(2) for own in seeds.split(32)])


def random_parts(centers: Tensor, draws: int, cells: int, parts: int, random: torch.Generator) -> Tensor:
    """Random cells in random order, cut into parts of equal size, ``(draws, parts, N)`` bool.

    Every token is in a part. Sizes are rounded up, so neighbouring parts may share a token; sequences of equal length
    are faster.
    """
    own = random_cells(centers, draws, cells, random)
    order = torch.rand(draws, len(centers), generator=random).gather(1, own).argsort(dim=1, stable=True).argsort(1)
    size = -(-len(centers) // parts)
    first = torch.linspace(0, len(centers) - size, parts).round()[:, None]
    return (order[:, None] >= first) & (order[:, None] < first + size)


def mean_slopes(slopes: Tensor, present: Tensor) -> Tensor:
    """The mean slope of each token over the subsets that have it, ``(S, N)`` to ``(N,)``; 0 if none has."""
    return slopes.sum(0) / present.sum(0).clamp(min=1)


def token_width(centers: Tensor) -> float:
    """The side of a token if all are squares that fill a rectangle, in pixels; 0 for tokens in a line."""
    sides = centers.amax(0) - centers.amin(0)
    return float(sides.prod().sqrt()) / max(math.sqrt(len(centers)) - 1, 1e-6)


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
