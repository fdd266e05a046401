"""Models on several tokenizers, and equal numbers of tokens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import spit
from spit.evaluation.options import Tokenizers
from spit.evaluation.tokenizers import EqualCounts, read_tokenizer, seeded, variants_of
from spit.predictor import Predictor

Make = Callable[..., Predictor]
SUPERPIXEL, VORONOI, PATCH = spit.SuperpixelTokenizer(2), spit.VoronoiTokenizer(), spit.PatchTokenizer(8)


@dataclass(frozen=True)
class Columns(spit.Tokenizer):
    """Makes any number of columns, or with ``wrong`` one too many."""

    columns: int = 4
    wrong: bool = False
    name: str = ""

    def partition(self, block: Tensor) -> spit.Partition:
        column = torch.arange(block.shape[-1]) * self.columns // block.shape[-1]
        return spit.Partition.from_labels(column.expand(len(block), *block.shape[-2:]))

    def partition_at(self, block: Tensor, count: int) -> spit.Partition:
        return self.replace(columns=count + self.wrong).partition(block)


@pytest.mark.parametrize(("text", "name", "options"), [
    ("patch", "patch", {}), ("patch,size=8", "patch", {"size": 8}),
    ("superpixel,levels=3,similarity=variance,compactness=0.5,max_tokens=none", "superpixel",
     {"levels": 3, "similarity": "variance", "compactness": 0.5, "max_tokens": "none"}),
    ("voronoi, cells = 9", "voronoi", {"cells": 9}), ("published,levels=3", "published", {"levels": 3}),
])
def test_a_tokenizer_as_text(text: str, name: str, options: dict[str, Any]) -> None:
    assert read_tokenizer(text) == (name, options)


@pytest.mark.usefixtures("restored_parts")
def test_options_have_the_types_of_a_registered_tokenizer() -> None:
    spit.register_tokenizer("columns", Columns)
    text = "columns,columns=3,wrong=true,name=two words"
    assert read_tokenizer(text) == ("columns", {"columns": 3, "wrong": True, "name": "two words"})


@pytest.mark.parametrize(("text", "told"), [
    ("pach", "one of patch, voronoi, superpixel, .* got 'pach'; did you mean 'patch'"),
    ("slic", "--plugin MODULE"),
    ("superpixel,level=3", "option of tokenizer 'superpixel': 'level'; did you mean 'levels'"),
    ("patch,levels=3", "option of tokenizer 'patch': 'levels'; known are size"),
    ("superpixel,levels=0", "levels of at least 1, got 0"),
    ("superpixel,levels=many", "levels to be a whole number, got 'many'"),
    ("superpixel,levels=", "levels to be a whole number, got ''"),
    ("superpixel,similarity=cosinus", "did you mean 'cosine'"),
    ("superpixel,patch", "expected OPTION=VALUE .* got 'patch' in 'superpixel,patch'; repeat --tokenizer"),
    ("", "one of patch, .* got ''"),
])
def test_what_is_no_tokenizer(text: str, told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        Tokenizers((text,))


def test_each_tokenizer_once() -> None:
    with pytest.raises(ValueError, match="each --tokenizer once, got 'patch' twice"):
        Tokenizers(("patch", "voronoi", "patch"))


def test_random_tokens_are_drawn_five_times(predictor: Make) -> None:
    runs = seeded(predictor("voronoi", cells=9))
    options = [run.model.config.tokenizer_options for run in runs]
    assert [(own["cells"], own["seed"]) for own in options] == [(9, seed) for seed in range(5)]
    assert len({run.digest for run in runs}) == 1
    assert len(seeded(predictor("patch"))) == len(seeded(predictor())) == 1


def test_variants_of_a_model(predictor: Make) -> None:
    model = predictor("voronoi", cells=9)
    own, other, once, patch = variants_of(model, ["voronoi", "voronoi,cells=4", "voronoi,seed=3", "patch"])
    assert [one.own for one in (own, other, once, patch)] == [True, False, False, False]
    assert [len(one.runs) for one in (own, other, once, patch)] == [5, 5, 1, 1]
    assert once.runs[0].model.tokenizer == spit.VoronoiTokenizer(9, seed=3), "options left out are the model's"
    assert other.runs[2].model.tokenizer == spit.VoronoiTokenizer(4, seed=2)
    assert patch.runs[0].model.tokenizer == spit.PatchTokenizer()
    [alone] = variants_of(model, [])
    assert (alone.tokenizer, alone.own, len(alone.runs)) == ("voronoi", True, 5)


@given(st.sampled_from([SUPERPIXEL, VORONOI, spit.create_tokenizer("published", levels=2)]),
       st.sampled_from([PATCH, SUPERPIXEL, spit.VoronoiTokenizer(7)]), st.integers(0, 100), st.integers(8, 24),
       st.integers(8, 24))
def test_equal_counts_in_every_image(tokenizer: spit.Tokenizer, reference: spit.Tokenizer, seed: int, height: int,
                                     width: int) -> None:
    random = torch.Generator().manual_seed(seed)
    noise, lines = (torch.randint(0, 256, size, dtype=torch.uint8, generator=random)
                    for size in ((2, 3, height, width), (1, 3, height, 1)))
    images = torch.cat([noise, lines.expand(-1, -1, -1, width)])
    equal = EqualCounts(tokenizer, reference)
    found = equal(images)
    assert found.counts.tolist() == reference(images).counts.tolist()
    for index, image in enumerate(images):
        assert torch.equal(found.labels[index], equal(image).labels[0]), "an image's tokens are its own"


def test_images_of_several_sizes_and_counts(photo: Callable[[str, int], Tensor]) -> None:
    images = [photo("coffee", 40), photo("chelsea", 40), photo("rocket", 24)]
    found, counts = EqualCounts(VORONOI, SUPERPIXEL)(images), SUPERPIXEL(images).counts
    assert torch.equal(found.counts, counts)
    assert len(set(counts.tolist())) == 3


def test_superpixels_of_equal_counts_are_those_of_the_hierarchy(photo: Callable[[str, int], Tensor]) -> None:
    """On their own count they are the tokenizer's own."""
    image = photo("coffee", 40)
    found = EqualCounts(SUPERPIXEL, PATCH)(image)
    assert torch.equal(found.labels, SUPERPIXEL.hierarchy(image).at(25).labels)
    own = EqualCounts(SUPERPIXEL, SUPERPIXEL)(image)
    assert torch.equal(own.labels, SUPERPIXEL(image).labels)


def test_a_tokenizer_of_your_own_can_make_them(photo: Callable[[str, int], Tensor]) -> None:
    assert EqualCounts(Columns(), PATCH)(photo("coffee", 40)).labels[0, 0].unique().tolist() == list(range(25))


def test_equal_counts_are_told_apart() -> None:
    """By the names too: two tokenizers may have the same options."""
    made = [EqualCounts(one, other) for one in (VORONOI, spit.create_tokenizer("published_voronoi"), SUPERPIXEL)
            for other in (PATCH, SUPERPIXEL)]
    assert len({str(one.config()) for one in made}) == 6
    assert EqualCounts(VORONOI, PATCH).config() == {
        "tokenizer": {"voronoi": {"cells": None, "seed": 0}}, "reference": {"patch": {"size": 8}}}


def test_a_tokenizer_that_miscounts_is_named(photo: Callable[[str, int], Tensor]) -> None:
    with pytest.raises(ValueError, match=r"Columns.partition_at to make \[25\] regions, got \[26\]"):
        EqualCounts(Columns(wrong=True), PATCH)(photo("coffee", 40))
    with pytest.raises(NotImplementedError, match="PatchTokenizer cannot make a given number"):
        EqualCounts(PATCH, SUPERPIXEL)(photo("coffee", 40))


def test_variants_of_equal_counts(predictor: Make) -> None:
    model = predictor(levels=2)
    patch, voronoi, own = variants_of(model, ["patch,size=8", "voronoi", "superpixel"], equal_counts=True)
    assert patch.runs[0].model.tokenizer == PATCH
    assert [run.model.tokenizer for run in voronoi.runs] == [
        EqualCounts(spit.VoronoiTokenizer(seed=seed), PATCH) for seed in range(5)]
    assert own.runs[0].model.tokenizer == EqualCounts(SUPERPIXEL, PATCH)
    assert (own.own, own.runs[0].digest) == (True, model.digest)
    with pytest.raises(ValueError, match="for --equal-counts, got patch; only the first"):
        variants_of(model, ["superpixel", "patch"], equal_counts=True)
    with pytest.raises(ValueError, match="two tokenizers or more for --equal-counts, got superpixel"):
        variants_of(model, [], equal_counts=True)
