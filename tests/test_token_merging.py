"""Token merging, beside which benchmarks/tokens.py draws its curves."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from spit.config import ModelConfig
from spit.model import SpitModel


@pytest.fixture
def merging(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks")
    import token_merging

    monkeypatch.delitem(sys.modules, "token_merging")
    return token_merging


@pytest.fixture
def model() -> SpitModel:
    torch.manual_seed(0)
    config = ModelConfig(tokenizer="patch", tokenizer_options={"size": 4}, resolution=4, width=24, depth=3, heads=2,
                         layer_scale=None, num_classes=7)
    return SpitModel(config).eval()


def test_without_merges_it_is_the_model(merging: ModuleType, model: SpitModel) -> None:
    images = torch.rand(2, 3, 16, 16)
    logits, counts = merging.merged_logits(model, images, 0)
    assert torch.allclose(logits, model(images), atol=1e-5)
    assert counts == [16, 16, 16]
    assert merging.merged_logits(model, images, 3)[1] == [13, 10, 7]
    assert merging.merged_logits(model, images, 99)[1] == [8, 4, 2]


def test_equal_tokens_merge_and_weigh_as_many(merging: ModuleType, model: SpitModel) -> None:
    """A flat image: all patches are equal but for their positions, which are taken away."""
    with torch.no_grad():
        model.embedder.projection.weight[:, 48:] = 0
    images = torch.full((1, 3, 16, 16), 0.3)
    assert torch.allclose(merging.merged_logits(model, images, 4)[0], model(images), atol=1e-5)


def test_merge_keeps_sums_and_the_class_token(merging: ModuleType) -> None:
    values, sizes, keys = torch.randn(2, 10, 6), torch.rand(2, 10, 1) + 1, torch.randn(2, 10, 3)
    merged, weights = merging.merge(values, sizes, keys, 4)
    assert merged.shape == (2, 6, 6)
    assert torch.allclose(merged[:, 0], values[:, 0])
    assert torch.allclose((merged * weights).sum(1), (values * sizes).sum(1), atol=1e-5)


def test_the_most_similar_merge(merging: ModuleType) -> None:
    keys = torch.tensor([[[1.0, 0], [0, 1], [1, 0.1], [1, 0.1], [-1, 0]]])
    values = torch.arange(5.0).view(1, 5, 1)
    merged, sizes = merging.merge(values, torch.ones(1, 5, 1), keys, 1)
    assert merged.flatten().tolist() == [0, 4, 1, 2.5]
    assert sizes.flatten().tolist() == [1, 1, 1, 2]
