"""Boundary refinement in Triton: the reference's, bit for bit."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spit.kernels import Rules, cpu, reference
from spit.tokenizers.preprocess import superpixel_features
from spit.tokens import offsets_of


@pytest.mark.usefixtures("few_programs", "small_blocks")
@pytest.mark.parametrize("shape", [(3, 3, 11, 13), (1, 1, 1, 1), (2, 4, 1, 9), (2, 1, 9, 1), (2, 3, 16, 16)])
def test_textures(gpu: Any, mixed: Callable[..., Tensor], shape: tuple[int, ...]) -> None:
    pixels = mixed(shape, 0, 255, first=8).to(torch.uint8)
    labels, counts = cpu.superpixel_labels(superpixel_features(pixels, "paper"), Rules(levels=2))
    before = labels.clone()
    got = gpu.refine(labels, offsets_of(counts), pixels, 2)
    assert torch.equal(got, reference.refine(labels, offsets_of(counts), pixels, 2))
    assert torch.equal(labels, before)


@pytest.mark.usefixtures("few_programs")
def test_a_photograph(gpu: Any, photo: Callable[[str, int], Tensor]) -> None:
    pixels = photo("chelsea", 48)[None]
    labels, counts = cpu.superpixel_labels(superpixel_features(pixels, "paper"), Rules(levels=3))
    expected = reference.refine(labels, offsets_of(counts), pixels, 2)
    assert not torch.equal(expected, labels)
    assert torch.equal(gpu.refine(labels, offsets_of(counts), pixels, 2), expected)
