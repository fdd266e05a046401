from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import spit
from spit.interop.published.tokenizers import PublishedTokenizer, PublishedVoronoiTokenizer

Photo = Callable[[str, int], Tensor]


def test_the_hierarchy(photo: Photo) -> None:
    tokenizer = PublishedTokenizer(merge_threshold=0.1)
    assert spit.create_tokenizer("published", **tokenizer.config()) == tokenizer
    hier = tokenizer.hierarchy(images := [photo("coffee", 40), photo("rocket", 40)[:, 7:]])
    assert len(hier) == 6
    assert all(map(torch.equal, hier[-1].labels, tokenizer(images).labels))
    assert hier.at(50).counts.tolist() == [50, 50]
    grey = images[0][:1]
    assert torch.equal(tokenizer(grey).labels, tokenizer(grey.expand(3, -1, -1)).labels)
    with pytest.raises(ValueError, match="the tokenizer published needs images with 1 or 3 channels, got 4"):
        tokenizer(torch.zeros(4, 8, 8))


def test_every_option_matters() -> None:
    image = torch.rand(3, 48, 48, generator=torch.Generator().manual_seed(0))
    variants = ({}, {"compactness": 0.1}, {"levels": 3}, {"merge_threshold": 0.6}, {"refine": 1})
    maps = {spit.create_tokenizer("published", **options)(image).labels.numpy().tobytes() for options in variants}
    assert len(maps) == len(variants)


@pytest.mark.parametrize(("size", "cells"), [((224, 224), 224), ((256, 256), 256), ((100, 50), 71)])
def test_as_many_cells_as_the_root_of_the_pixels(size: tuple[int, int], cells: int) -> None:
    assert PublishedVoronoiTokenizer()(torch.zeros(3, *size)).counts.tolist() == [cells]
    assert PublishedVoronoiTokenizer(9)(torch.zeros(3, *size)).counts.tolist() == [9]
