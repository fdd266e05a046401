import dataclasses

import pytest
import torch

from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, Tokenizer, VoronoiTokenizer, create_tokenizer

EXAMPLES = [
    ("patch", {"size": 8}, PatchTokenizer(8)),
    ("voronoi", {"cells": 9, "seed": 4}, VoronoiTokenizer(9, seed=4)),
    ("superpixel", {"levels": 2, "max_tokens": 7}, SuperpixelTokenizer(levels=2, max_tokens=7)),
]


@pytest.mark.parametrize(("name", "options", "tokenizer"), EXAMPLES)
def test_create_and_config_are_inverse(name: str, options: dict[str, int], tokenizer: Tokenizer) -> None:
    assert create_tokenizer(name, **options) == tokenizer
    assert create_tokenizer(name, **tokenizer.config()) == tokenizer
    assert create_tokenizer(name) != tokenizer
    assert hash(create_tokenizer(name, **options)) == hash(tokenizer)


@pytest.mark.parametrize(("name", "options", "tokenizer"), EXAMPLES)
def test_tokenizers_do_not_change(name: str, options: dict[str, int], tokenizer: Tokenizer) -> None:
    for option in options:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(tokenizer, option, 1)


def test_a_tokenizer_needs_a_partition() -> None:
    with pytest.raises(TypeError, match="partition"):
        Tokenizer()


def test_the_call_joins_the_blocks_of_a_list() -> None:
    part = PatchTokenizer(2)([torch.zeros(3, 2, 2), torch.zeros(3, 4, 2), torch.zeros(3, 2, 2)])
    assert part.counts.tolist() == [1, 2, 1]


@pytest.mark.parametrize(("name", "options", "message"), [
    ("superpixels", {}, "one of patch, voronoi, superpixel, .* got 'superpixels'; did you mean 'superpixel'"),
    ("slic", {}, "got 'slic'; if it is your own, import the module .* --plugin MODULE$"),
    ("superpixel", {"level": 3}, "option of tokenizer 'superpixel': 'level'; did you mean 'levels'"),
    ("patch", {"levels": 3}, "option of tokenizer 'patch': 'levels'; known are size"),
])
def test_unknown_names_and_options(name: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_tokenizer(name, **options)
