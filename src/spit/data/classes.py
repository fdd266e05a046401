"""Class names: the 1,000 of ImageNet-1k, and those of a model."""

import difflib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from spit.config import ModelConfig

ALIKE = 0.7  # a likeness of names by difflib; names with a letter wrong have it, at 0.6 others do too


class Guess(NamedTuple):
    """A class name and the probability that the model gives it.

    Example:
        >>> import spit
        >>> spit.Guess("tabby", 0.75).name
        'tabby'
    """

    name: str
    probability: float


@cache
def imagenet_classes() -> tuple[str, ...]:
    """The name of every class, in the order of a model's logits, each of them different."""
    return tuple(name for _, name in _rows())


def class_names(config: "ModelConfig") -> tuple[str, ...]:
    """The printable names of a model's classes: its own, or ImageNet's if there are 1,000, or numbers."""
    return printable_names(config.class_names, config.num_classes)


def printable_names(given: Sequence[str], num_classes: int) -> tuple[str, ...]:
    """The given names if there are any, or ImageNet's if there are 1,000 classes, or numbers."""
    if not given and num_classes == 1000:
        return imagenet_classes()
    names = given or [f"class {index}" for index in range(num_classes)]
    return tuple(name if name.isprintable() else repr(name) for name in names)


def near_names(names: Sequence[str], word: str, count: int = 4) -> list[str]:
    """Names like a word that is none of them: those with the word in them, short ones first, then those spelt alike."""
    spelling = {name.casefold(): name for name in names}
    having = sorted((name for name in spelling if word.casefold() in re.split(r"\W+", name)), key=len)
    alike = difflib.get_close_matches(word.casefold(), spelling, count, ALIKE)
    return [spelling[name] for name in dict.fromkeys([*having, *alike])][:count]


def folder_names(folders: Sequence[str]) -> tuple[str, ...]:
    """Class names from the names of training folders.

    WordNet ids become ImageNet's names. Folders that are named by their own numbers give no names.
    """
    if all(name.isdecimal() and int(name) == index for index, name in enumerate(folders)):
        return ()
    known = dict(_rows())
    return tuple(known.get(name, name) for name in folders)


def wordnet_ids() -> dict[str, int]:
    """ImageNet's WordNet ids and their indices."""
    return {wordnet: index for index, (wordnet, _) in enumerate(_rows())}


@cache
def _rows() -> tuple[tuple[str, str], ...]:
    """WordNet id and name of every class."""
    rows = files("spit.data").joinpath("imagenet_classes.tsv").read_text(encoding="utf-8").splitlines()
    return tuple((wordnet, name) for _, wordnet, name in (row.split("\t") for row in rows))
