from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

import spit
from spit import Predictor, WeightsError
from spit.model import SpitModel
from spit.segmentation import RegionGraph, TokenHead, load_head
from spit.segmentation.head import MARGIN, head_for, stacked_tokens
from spit.segmentation.smoothing import smooth

Scene = Callable[..., Tensor]


@pytest.fixture
def head(model: SpitModel) -> TokenHead:
    generator = torch.Generator().manual_seed(1)
    return TokenHead(torch.randn(2, 32, generator=generator), torch.tensor(0.25), (0, 2),
                     {"weights": Predictor(model).digest})


@pytest.fixture
def file(head: TokenHead, tmp_path: Path) -> Path:
    return head.save(tmp_path / "mine.safetensors")


def test_scores_by_hand(model: SpitModel, head: TokenHead, scene: Scene) -> None:
    image = scene()
    out = model(image[None], record=("features",))
    expected = torch.full((int(out.partition.counts[0]),), 0.25)
    for layer, own in zip((0, 2), head.weights, strict=True):
        rows = out.features[layer].values[1:]
        unit = (rows - rows.mean(1, keepdim=True)) / (rows.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        expected = expected + unit @ own
    [seen] = Predictor(model)(image, crop=False).passes
    torch.testing.assert_close(head.scores(seen), expected, atol=1e-4, rtol=1e-4)
    assert [tokens.values.dtype for tokens in stacked_tokens(seen, (0, 2))] == [torch.float32] * 2


def test_methods_differ_and_both_is_the_mean(model: SpitModel, head: TokenHead, file: Path, scene: Scene) -> None:
    image = scene()
    prediction = Predictor(model)(image, crop=False)
    plain = prediction.segment(clean=False, merge=False)
    cut, learnt, both = (prediction.segment(method=method, token_head=None if method == "cut" else str(file),
                                            clean=False, merge=False) for method in ("cut", "head", "both"))
    assert torch.equal(plain.values, cut.values)  # no head comes with these weights
    graph = RegionGraph.of(image, prediction.partition.labels[0])
    own = head.scores(prediction.passes[0])
    for found, scores in ((learnt, own), (both, (own + cut.values) / 2)):
        expected = smooth(graph, (scores - MARGIN).double().numpy().clip(-4, 4))
        np.testing.assert_allclose(found.values.numpy(), expected, atol=1e-4)
        assert torch.equal(found.mask, found.saliency > 0.5)
    assert bool(learnt.tau.isnan().all())
    assert torch.equal(both.tau, cut.tau)


def test_a_batch_changes_nothing(model: SpitModel, file: Path, scene: Scene) -> None:
    images = [scene(seed=1), scene(30, 44, seed=2)]
    together = spit.segment(model, images, method="both", token_head=str(file))
    for index, image in enumerate(images):
        alone = spit.segment(model, image, method="both", token_head=str(file))
        assert torch.equal(together.saliency[index], alone.saliency[0])
        assert torch.equal(together.mask[index], alone.mask[0])


def test_nothing_to_cut_stays_undecided(model: SpitModel, file: Path) -> None:
    found = spit.segment(model, torch.full((3, 16, 16), 0.5), method="both", token_head=str(file))
    assert bool((found.saliency == 0.5).all())
    assert not found.mask.any()


def test_files(head: TokenHead, file: Path, tmp_path: Path) -> None:
    found = load_head(file)
    assert torch.equal(found.weights, head.weights)
    assert torch.equal(found.bias, head.bias)
    assert (found.layers, found.about, found.digest) == (head.layers, head.about, head.digest)
    assert TokenHead(head.weights, head.bias + 1, head.layers, head.about).digest != head.digest
    assert load_head(head) is head
    with pytest.raises(WeightsError, match=r"NAME\.safetensors"):
        head.save(tmp_path / "head.bin")
    with pytest.raises(WeightsError, match="there is none"):
        load_head(tmp_path / "nowhere.safetensors")
    with pytest.raises(WeightsError, match="comes with a head for saliency, got vit_tiny_16; train one"):
        load_head("vit_tiny_16")
    (tmp_path / "damaged.safetensors").write_bytes(file.read_bytes()[:40])
    safetensors.torch.save_file({"weights": head.weights}, tmp_path / "foreign.safetensors")
    TokenHead(torch.full((2, 32), torch.nan), head.bias, (0, 2), {}).save(tmp_path / "nan.safetensors")
    for name in ("damaged", "foreign", "nan"):
        with pytest.raises(WeightsError, match="that spit wrote"):
            load_head(tmp_path / f"{name}.safetensors")


def test_a_head_of_other_weights_is_refused(model: SpitModel, head: TokenHead, file: Path, tmp_path: Path,
                                            scene: Scene) -> None:
    torch.manual_seed(5)
    other = SpitModel(model.config).eval()
    with pytest.raises(WeightsError, match="a head of this model's weights"):
        spit.segment(other, scene(), token_head=str(file))
    wide = TokenHead(torch.zeros(1, 8), head.bias, (0,), head.about).save(tmp_path / "wide.safetensors")
    with pytest.raises(WeightsError, match="width 32 and 3 layers"):
        head_for(Predictor(model), None, wide)
    assert head_for(Predictor(model), None) is None
    with pytest.raises(WeightsError, match="has no token head, which method 'both' needs; train one with"):
        head_for(Predictor(model), "both")
    with pytest.raises(WeightsError, match="spit train-head"):
        spit.segment(model, scene(), method="head")
    with pytest.raises(ValueError, match="leave one of them out"):
        head_for(Predictor(model), "cut", file)
    with pytest.raises(ValueError, match="head, cut, both"):
        spit.segment(model, scene(), method="heads")


def test_the_embedded_model_has_a_head() -> None:
    predictor = spit.load("spit_tiny_16", device="cpu")
    found = head_for(predictor, None)
    assert found is not None
    assert found.digest == load_head("spit_tiny_16").digest
    assert found.weights.numel() < 5000
