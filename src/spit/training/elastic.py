"""Elastic tokens: in training, part of each batch is cut into more or fewer tokens than the model's own.

A batch has ``elastic.parts`` parts. The first ``elastic.own`` of them have the model's own tokens, so that it keeps
what it knows, and each of the others has a setting drawn from the recipe's. A part has the same number of images at
every step: on a GPU each setting is recorded once. The draws come from torch's generator, which the loop seeds by the
step.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, cast

import torch
from torch import Tensor

from spit.model import SpitModel
from spit.options import Options, documented, option
from spit.partition import Partition
from spit.thinning import Budget
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, Tokenizer, VoronoiTokenizer
from spit.training import TrainingError


@documented
@dataclass(frozen=True)
class ElasticConfig(Options):
    """``[elastic]``: how images are tokenized beside the model's own way. Every number listed is one setting, drawn as
    often as any other; without one, all images have the model's own tokens."""

    parts: int = option(8, "Parts of a batch, each with its own setting", least=1)
    own: int = option(4, "Parts with the model's own tokens", least=0)
    max_tokens: tuple[int, ...] = option((), "Bounds on the superpixels of an image", least=1)
    merge_threshold: tuple[float, ...] = option((), "Distances below which superpixels are joined", least=0)
    keep: tuple[int, ...] = option((), "Token counts to keep at random", least=1)
    spread: tuple[int, ...] = option((), "Token counts to keep, spread over the image", least=1)
    patch: tuple[int, ...] = option((), "Sides of square patches, in pixels", least=1)
    voronoi: tuple[int, ...] = option((), "Numbers of Voronoi cells", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.own > self.parts:
            raise ValueError(f"expected own to be at most parts={self.parts}, got {self.own}")


class Setting(NamedTuple):
    """One way to tokenize, and which tokens of an image to keep; None keeps those that the model's budget keeps."""

    tokenizer: Tokenizer
    keep: Budget | None = None


class Piece(NamedTuple):
    """Images ``first`` to ``last − 1`` of a batch, and their setting."""

    setting: Setting
    first: int
    last: int


@dataclass(frozen=True)
class ElasticTokenizer(Tokenizer):
    """τ of one training step: each piece of the batch by its own setting."""

    pieces: tuple[Piece, ...]

    def partition(self, block: Tensor) -> Partition:
        return Partition.cat([setting.tokenizer.partition(block[first:last]) for setting, first, last in self.pieces])


class Elastic:
    """Draws how the images of a step are tokenized.

    Args:
        model: the one that trains.
        config: see :class:`ElasticConfig`.

    Raises:
        TrainingError: superpixels are asked for, but the model has other tokens.
    """

    def __init__(self, model: SpitModel, config: ElasticConfig) -> None:
        self.model, self.config = model, config
        self.settings = settings_of(model, config)

    def __bool__(self) -> bool:
        return bool(self.settings) and self.config.own < self.config.parts

    @contextmanager
    def drawn(self, images: int) -> Iterator[None]:
        """Give the model the tokens of one step."""
        if not self:
            yield
            return
        model, own = self.model, self.model.tokenizer
        pieces = self._draw(Setting(cast(Tokenizer, own)), images)  # settings_of takes no other
        model.tokenizer = ElasticTokenizer(tuple(pieces))
        if any(piece.setting.keep for piece in pieces):
            most = model.config.token_budget or torch.iinfo(torch.int64).max
            keeps = ((setting.keep or Budget(most), last - first) for setting, first, last in pieces)
            model.budgets = [Budget(min(most, keep.tokens), keep.spread) for keep, count in keeps for _ in range(count)]
        try:
            yield
        finally:
            model.tokenizer, model.budgets = own, None

    def _draw(self, own: Setting, images: int) -> list[Piece]:
        """The pieces of a batch that have images: the model's own tokens first, then a setting for each other part."""
        parts, first = self.config.parts, self.config.own
        chosen = torch.randint(len(self.settings), (parts - first,)).tolist()
        ends = [images * number // parts for number in range(first, parts + 1)]
        pieces = [Piece(own, 0, ends[0]), *(Piece(self.settings[index], *pair) for index, pair in zip(
            chosen, pairwise(ends), strict=True))]
        return [piece for piece in pieces if piece.last > piece.first]


def settings_of(model: SpitModel, config: ElasticConfig) -> Sequence[Setting]:
    """Every setting that a recipe lists, for this model."""
    own = model.tokenizer
    if not isinstance(own, Tokenizer):
        if config == ElasticConfig():
            return []
        raise TrainingError(f"expected one of spit's tokenizers to train with [elastic], got {own!r}")
    changes = [{name: value} for name in ("max_tokens", "merge_threshold") for value in getattr(config, name)]
    if changes and not isinstance(own, SuperpixelTokenizer):
        raise TrainingError(f"expected a model with superpixel tokens for elastic.{next(iter(changes[0]))}, got "
                            f"{model.config.tokenizer} tokens; list patch, voronoi, keep or spread alone")
    return [*(Setting(replace(own, **change)) for change in changes),
            *(Setting(own, Budget(count)) for count in config.keep),
            *(Setting(own, Budget(count, spread=True)) for count in config.spread),
            *(Setting(PatchTokenizer(size)) for size in config.patch),
            *(Setting(VoronoiTokenizer(cells)) for cells in config.voronoi)]
