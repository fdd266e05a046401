"""Models on the tokenizers that are compared, each with tokens of its own number or all with equally many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, cast

from torch import Tensor

from spit.options import read_value
from spit.partition import Partition
from spit.parts import TOKENIZERS
from spit.predictor import Predictor
from spit.tokenizers import Tokenizer, VoronoiTokenizer

SEEDS = 5  # runs of a model whose tokens are random, as the paper does for RViT


@dataclass(frozen=True)
class EqualCounts(Tokenizer):
    """A tokenizer with exactly as many regions in each image as another one, ``reference``, has there."""

    tokenizer: Tokenizer
    reference: Tokenizer

    def partition(self, block: Tensor) -> Partition:
        counts = self.reference(block).counts.tolist()
        runs = [(count, sum(1 for _ in run)) for count, run in groupby(counts)]  # one call for images of one count
        chunks = block.split([length for _, length in runs])
        found = Partition.cat([self.tokenizer.partition_at(images, count)
                               for (count, _), images in zip(runs, chunks, strict=True)])
        if found.counts.tolist() != counts:
            raise ValueError(f"expected {type(self.tokenizer).__name__}.partition_at to make {counts} regions, got "
                             f"{found.counts.tolist()}")
        return found

    def config(self) -> dict[str, Any]:
        """Both tokenizers with their names, since options alone do not tell them apart."""
        return {role: {TOKENIZERS.name_of(one) or type(one).__name__: one.config()}
                for role, one in (("tokenizer", self.tokenizer), ("reference", self.reference))}


@dataclass(frozen=True)
class Variant:
    """A model on one of the tokenizers that are compared.

    Attributes:
        tokenizer: as it was asked for.
        own: whether it is the model's own.
        runs: the model, or if its tokens are random the model with each of five seeds.
    """

    tokenizer: str
    own: bool
    runs: Sequence[Predictor]


def variants_of(predictor: Predictor, asked: Sequence[str], equal_counts: bool = False) -> list[Variant]:
    """A model on each of the tokenizers that :func:`read_tokenizer` reads; on its own if there are none.

    Options left out are the model's own for its own tokenizer. A ``seed`` that was asked for is the only one.

    Args:
        equal_counts: all others make as many tokens of each image as the first one.
    """
    model, found = predictor.model, []
    for text in asked:
        name, options = read_tokenizer(text)
        one = predictor.with_tokenizer(name, **options)
        found.append(Variant(text, one.model.tokenizer == model.tokenizer, [one] if "seed" in options else seeded(one)))
    found = found or [Variant(model.config.tokenizer, True, seeded(predictor))]
    return _equalized(found) if equal_counts else found


def read_tokenizer(text: str) -> tuple[str, dict[str, Any]]:
    """Name and options of ``NAME[,OPTION=VALUE…]``, which are those of a tokenizer; a value is TOML or a bare word.

    Raises:
        TypeError, ValueError: there is no such tokenizer, option or value; near names are suggested.
    """
    name, *given = text.split(",")
    options = {}
    for part in given:
        option, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"expected OPTION=VALUE after the name of a tokenizer, got {part!r} in {text!r}; repeat "
                             "--tokenizer for several tokenizers")
        options[option.strip()] = read_value(value)
    TOKENIZERS.create(name, options)
    return name, options


def seeded(predictor: Predictor) -> list[Predictor]:
    """The predictor, or if its tokens are random the predictor with each of five seeds."""
    if not isinstance(predictor.model.tokenizer, VoronoiTokenizer):
        return [predictor]
    return [predictor.with_tokenizer(predictor.model.config.tokenizer, seed=seed) for seed in range(SEEDS)]


def _equalized(variants: Sequence[Variant]) -> list[Variant]:
    """The variants with the token counts of the first one."""
    first, *others = variants
    if not others:
        raise ValueError(f"expected two tokenizers or more for --equal-counts, got {first.tokenizer}; give --tokenizer")
    fixed = [one.tokenizer for one in others if type(_tokenizer(one.runs[0])).partition_at is Tokenizer.partition_at]
    if fixed:
        raise ValueError("expected tokenizers that can make any number of tokens for --equal-counts, got "
                         f"{', '.join(fixed)}; only the first --tokenizer may be one that cannot")
    return [first, *(replace(one, runs=[run.with_tokenizer(EqualCounts(_tokenizer(run), _tokenizer(first.runs[0])))
                                        for run in one.runs]) for one in others)]


def _tokenizer(predictor: Predictor) -> Tokenizer:
    return cast(Tokenizer, predictor.model.tokenizer)  # since it has a name
