"""τ on arrays has the labels of torch's tokenizers, bit for bit."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import spit
from spit.runtime.tokenizers import make_tokenizer

CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("patch", {"size": 16}),
    ("patch", {"size": 7}),
    ("voronoi", {}),
    ("voronoi", {"cells": 40, "seed": 3}),
    ("voronoi", {"cells": 1}),
    ("superpixel", {"levels": 4, "compactness": 0.8, "self_loop": "none"}),
    ("superpixel", {"levels": 2, "features": "saturated", "refine": 2}),
    ("superpixel", {"levels": 3, "max_tokens": 9, "merge_threshold": 0.05, "similarity": "variance"}),
    ("superpixel", {"self_loop": "paper", "similarity": "euclidean"}),
    ("superpixel", {"method": "tree", "compactness": 3.0}),
    ("superpixel", {"method": "tree", "max_tokens": 20, "refine": 2}),
]


def image(height: int, width: int, seed: int, channels: int = 3, smooth: bool = True) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    small = torch.rand(1, channels, max(height // 6, 1), max(width // 6, 1), generator=random)
    noise = torch.rand(1, channels, height, width, generator=random)
    whole = torch.nn.functional.interpolate(small, (height, width), mode="bilinear") + 0.1 * noise if smooth else noise
    return (whole[0].clamp(0, 1) * 255).to(torch.uint8)


@pytest.mark.parametrize(("name", "options"), CHOICES)
@settings(max_examples=8, deadline=None)
@given(height=st.integers(8, 60), width=st.integers(8, 60), seed=st.integers(0, 99), smooth=st.booleans())
def test_labels_are_torch_s_bit_for_bit(name: str, options: dict[str, Any], height: int, width: int, seed: int,
                                        smooth: bool) -> None:
    pixels = image(height, width, seed, smooth=smooth)
    options = {**options, "cells": min(options["cells"], height * width)} if "cells" in options else options
    tokenizer = spit.create_tokenizer(name, **options)
    part = tokenizer(pixels)
    found = make_tokenizer(name, tokenizer.config())(pixels.numpy())
    assert found.labels.dtype == np.int32
    assert found.count == int(part.counts[0])
    assert np.array_equal(found.labels, part.labels[0].numpy())
    if part.frames is not None:
        assert found.frames is not None
        assert np.array_equal(found.frames, part.frames.numpy())


@pytest.mark.parametrize(("name", "options"), [("voronoi", {"cells": 250}), ("superpixel", {})])
def test_a_grey_image_and_more_sites_than_half_the_pixels(name: str, options: dict[str, Any]) -> None:
    pixels = image(20, 20, 1, channels=1)
    tokenizer = spit.create_tokenizer(name, **options)
    found = make_tokenizer(name, tokenizer.config())(pixels.numpy())
    assert np.array_equal(found.labels, tokenizer(pixels).labels[0].numpy())


def test_what_it_does_not_have_is_refused() -> None:
    assert make_tokenizer("superpixel", {"preset": "spit"})  # as version 0.1 wrote it into files
    with pytest.raises(ValueError, match="unknown option of the tokenizer 'preset'"):
        make_tokenizer("superpixel", {"preset": "published"})
    with pytest.raises(ValueError, match="expected tokenizer to be one of patch, voronoi, superpixel"):
        make_tokenizer("rows", {})
    with pytest.raises(ValueError, match="expected levels of at least 1"):
        make_tokenizer("superpixel", {"levels": 0})
