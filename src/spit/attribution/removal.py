"""A model that gets some tokens of an image and not the others.

Sequences are ragged, so a token can be absent: the image is not painted over and not tokenized again. Where patches
show their neighbours, an absent one's part gets the mean colour (:mod:`spit.attribution.absence`). A shorter sequence
is also a cheaper pass.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from spit.attribution.absence import EmbeddedTokens, ImageTokens, embedded, image_tokens
from spit.attribution.passes import config_of_passes, image_generator
from spit.attribution.presence import BACKWARD, presence_slopes
from spit.backbone import Spans, Transformer
from spit.embedder import put_class_token
from spit.forward_pass import ForwardPass
from spit.model import SpitModel
from spit.options import Options, option

BATCHES = (32, 512)  # subsets in a pass on a CPU and on a GPU


class Subsets:
    """The probability of a class of one image, for any subset of its tokens.

    Args:
        model: in evaluation mode.
        tokens: of the image.
        label: the class.
        batch: subsets in a pass (default: 32, or 512 on a GPU).
        progress: called after each pass with the number of subsets asked so far.

    Attributes:
        asked: how many subsets were asked; one with gradients counts as three.
    """

    def __init__(self, model: SpitModel, tokens: ImageTokens, label: int, batch: int | None = None,
                 progress: Callable[[int], None] = lambda passes: None) -> None:
        self.model, self.tokens, self.label = model, tokens, label
        self.asked = 0
        self._batch, self._progress = batch or BATCHES[tokens.features.is_cuda], progress

    @torch.no_grad()
    def __call__(self, present: Tensor) -> Tensor:
        """``(S, N)`` bool, on any device, to ``(S,)`` float32 on the features' device."""
        answers = []
        for some in present.to(self.tokens.features.device).split(self._batch):
            answers.append(self._logits(some).float().softmax(1)[:, self.label])
            self.asked += len(some)
            self._progress(self.asked)
        return torch.cat(answers)

    def slopes(self, present: Tensor) -> Tensor:
        """The slope of the class's log-probability by each token's presence, ``(S, N)`` bool to float64 on the CPU."""
        found = presence_slopes(self.model, self.tokens, present, self.label)
        self.asked += BACKWARD * len(present)
        self._progress(self.asked)
        return found.cpu().double()

    def _logits(self, present: Tensor) -> Tensor:
        """γ, f and h of subsets; of the last block only the class token, where f can do that."""
        model = self.model
        if not isinstance(model.backbone, Transformer) or model.compiled:
            return model.run(self.tokens.subsets(present))[0]
        tokens = put_class_token(self._embedded.subsets(present), model.embedder.class_token)
        logits: Tensor = model.head(model.backbone.run_first(tokens.values, Spans.of(tokens)))
        return logits

    @cached_property
    def _embedded(self) -> EmbeddedTokens:
        return embedded(self.tokens, self.model.embedder)


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


@dataclass(frozen=True)
class TokenRemoval(Options, ABC):
    """What the methods share that leave tokens out."""

    of_class: ClassVar[bool] = True

    samples: int = option(256, "Subsets of the tokens an image, each a forward pass of the tokens it has", least=1)
    cells: int = option(40, "Random cells that tokens are divided into, to be left out together", least=2)
    seed: int = option(0, "Seed of the cells and subsets")
    batch: int | None = option(None, "Subsets in a forward pass (default: 32, or 512 on a GPU)", least=1)
    progress: Callable[[int], None] = field(default=lambda passes: None, compare=False, repr=False)

    config = config_of_passes

    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        return seen.paint(torch.cat(self.token_values(seen, classes)).float().to(seen.logits.device))

    def token_values(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        """The values of each image's tokens, ``(N,)`` each, on the CPU."""
        asked = zip(seen.images, image_tokens(seen), token_centers(seen), classes.tolist(), strict=True)
        return [self.values(Subsets(seen.model, tokens, label, self.batch, self.progress), centers,
                            image_generator(image, self.seed)).cpu() for image, tokens, centers, label in asked]

    @abstractmethod
    def values(self, ask: Subsets, centers: Tensor, random: torch.Generator) -> Tensor:
        """The value of each token, ``(N,)``.

        Args:
            ask: the probability of the class for any subset.
            centers: of the tokens, in pixels, ``(N, 2)`` float64 on the CPU.
            random: a generator that depends on the image and the seed.
        """
