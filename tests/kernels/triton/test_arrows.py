"""τ, φ and a whole model on the Triton backend, against the numba one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spit.features import FeatureExtractor
from spit.interop.published.features import PublishedFeatures
from spit.interop.published.tokenizers import PublishedTokenizer
from spit.model import ModelConfig, SpitModel
from spit.partition import Partition
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, VoronoiTokenizer

pytestmark = pytest.mark.usefixtures("few_programs")
OnGpu = Callable[..., Any]


@pytest.fixture(scope="module")
def images(photo: Callable[[str, int], Tensor]) -> list[Tensor]:
    """Two of one size, one of another."""
    return [photo("astronaut", 16)[:, :12], photo("coffee", 16)[:, 4:], photo("chelsea", 11)]


def assert_same(got: Partition, expected: Partition) -> None:
    assert torch.equal(got.offsets.cpu(), expected.offsets)
    assert all(torch.equal(a.cpu(), b) for a, b in zip(got.blocks, expected.blocks, strict=True))


@pytest.mark.parametrize("tokenizer", [
    SuperpixelTokenizer(levels=2),
    SuperpixelTokenizer(levels=3, features="saturated", self_loop="paper"),
    PublishedTokenizer(levels=3, compactness=0.1, merge_threshold=0.1),
    SuperpixelTokenizer(levels=2, compactness=0.1, self_loop="paper", merge_threshold=0.05, max_tokens=9),
    VoronoiTokenizer(5),
    PatchTokenizer(8),
], ids=str)
def test_tokenizers(on_gpu: OnGpu, images: list[Tensor], tokenizer: Any) -> None:
    assert_same(on_gpu(tokenizer, images), tokenizer(images))


def test_hierarchy(on_gpu: OnGpu, images: list[Tensor]) -> None:
    tokenizer = SuperpixelTokenizer(levels=2, max_tokens=6)
    got, expected = on_gpu(tokenizer.hierarchy, images[:2]), tokenizer.hierarchy(images[:2])
    assert len(got) == len(expected) == 4
    for t in range(4):
        assert_same(got[t], expected[t])


@pytest.mark.parametrize("floating", [False, True])
def test_features(on_gpu: OnGpu, images: list[Tensor], floating: bool) -> None:
    tokenizer, extractor = SuperpixelTokenizer(levels=3), FeatureExtractor(resolution=5, position_bins=6)
    given = [image / 255 for image in images] if floating else images
    got, expected = on_gpu(extractor, given, on_gpu(tokenizer, given)), extractor(given, tokenizer(given))
    torch.testing.assert_close(got.values.cpu(), expected.values, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("gradients", [True, False])
def test_features_of_the_release(on_gpu: OnGpu, images: list[Tensor], gradients: bool) -> None:
    tokenizer = SuperpixelTokenizer(levels=3)
    extractor = PublishedFeatures(gradients=gradients, resolution=5)
    got, expected = on_gpu(extractor, images, on_gpu(tokenizer, images)), extractor(images, tokenizer(images))
    torch.testing.assert_close(got.values.cpu(), expected.values, atol=5e-6, rtol=1e-6)


def test_frames_of_patches_reach_beyond_the_image(on_gpu: OnGpu, images: list[Tensor]) -> None:
    tokenizer, extractor = PatchTokenizer(16), FeatureExtractor(resolution=16, gradients=False, normalization="none")
    got, expected = on_gpu(extractor, images, on_gpu(tokenizer, images)), extractor(images, tokenizer(images))
    torch.testing.assert_close(got.values.cpu(), expected.values, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("tokenizer", ["superpixel", "voronoi", "patch"])
def test_models(on_gpu: OnGpu, images: list[Tensor], tokenizer: str) -> None:
    options: dict[str, Any] = {"superpixel": {"levels": 3}, "voronoi": {"cells": 4}, "patch": {"size": 12}}[tokenizer]
    config = ModelConfig(tokenizer=tokenizer, tokenizer_options=options, resolution=4, position_bins=4,
                         gradient_bins=4, width=16, depth=2, heads=2, layer_scale=None, num_classes=5)
    torch.manual_seed(0)
    model = SpitModel(config).eval()
    for parameter in model.parameters():
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.2)
    expected = model(images)
    assert expected.std() > 0.1
    got = on_gpu(lambda given: model.to(given[0].device)(given), images)
    torch.testing.assert_close(got.cpu(), expected, atol=1e-5, rtol=0)


def test_gradients_of_logits_with_respect_to_pixels(on_gpu: OnGpu, images: list[Tensor]) -> None:
    config = ModelConfig(tokenizer_options={"levels": 3}, resolution=4, position_bins=4, gradient_bins=4, width=16,
                         depth=1, heads=2, layer_scale=None, num_classes=5)
    torch.manual_seed(0)
    model = SpitModel(config).eval()
    pixels = images[:2]
    gradients = []
    for backend in (on_gpu, lambda function, given: function(given)):
        given = (torch.stack(pixels) / 255).requires_grad_()
        backend(lambda x: model.to(x.device)(x), given).square().sum().backward()
        gradients.append(given.grad)
    assert gradients[1].abs().max() > 0
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)
