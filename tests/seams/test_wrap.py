"""spit.wrap on a transformer of nobody's: what holds for every family, and what is refused."""

import copy
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

import spit
from seams.plain import PlainSeam, PlainViT, WrongSeam
from spit.errors import WeightsError
from spit.seams.seam import SEAMS

Photos = Callable[..., list[Tensor]]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with patch.dict(SEAMS):
        spit.register_seam(PlainViT, PlainSeam)
        yield


@pytest.fixture
def make() -> Callable[..., PlainViT]:
    def create(**options: Any) -> PlainViT:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return PlainViT(**options).eval()

    return create


@pytest.mark.parametrize("place", ["centroid", "average"])
@pytest.mark.parametrize("embed", ["crop", "window", "pool"])
@pytest.mark.parametrize("prefix", [0, 1, 3])
@torch.no_grad()
def test_squares(make: Callable[..., PlainViT], photos: Photos, prefix: int, embed: Any, place: Any) -> None:
    vit = make(prefix=prefix)
    images = torch.stack(photos((32, 32), (32, 32)))
    model = spit.wrap(vit, "patch", embed, place)
    assert torch.allclose(model(images), vit((images - 0.5) / 0.25), atol=1e-5)
    assert model.tokenizer == spit.PatchTokenizer(8)
    assert spit.wrap(vit, embed=embed).tokenizer == spit.SuperpixelTokenizer(3, compactness=0.95, self_loop="none")


@pytest.mark.parametrize("prefix", [0, 1, 3])
def test_ragged_batches(make: Callable[..., PlainViT], photos: Photos, prefix: int) -> None:
    """Each image as if alone, in any order, in training too."""
    model = spit.wrap(make(prefix=prefix))
    images = photos((32, 48), (40, 24), (32, 48), (16, 16))
    with torch.no_grad():
        out = model(images, record=("attention", "features"))
        assert len(set(out.partition.counts.tolist())) > 1
        for index, image in enumerate(images):
            alone = model([image], record=("attention", "features"))
            assert torch.allclose(out.logits[index], alone.logits[0], atol=1e-5)
            assert torch.allclose(out.tokens.split()[index], alone.tokens.values, atol=1e-5)
            for layer in range(3):
                assert torch.allclose(out.attention[layer][index], alone.attention[layer][0], atol=1e-5)
                assert torch.allclose(out.features[layer].split()[index], alone.features[layer].values, atol=1e-5)
        assert torch.allclose(model(images[::-1]), out.logits.flip(0), atol=1e-5)
    model.train()
    model(images).sum().backward()
    used = {name: parameter for name, parameter in model.named_parameters() if parameter.numel()}
    together = {name: parameter.grad.clone() for name, parameter in used.items()}  # type: ignore[union-attr]
    model.zero_grad()
    for image in images:
        model([image]).sum().backward()
    for name, parameter in used.items():
        torch.testing.assert_close(parameter.grad, together[name], rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_an_image_may_lose_all_its_tokens(make: Callable[..., PlainViT], photos: Photos) -> None:
    """As methods that leave tokens out may ask; the prefix is left."""
    model = spit.wrap(make(prefix=2))
    features = model.tokenize(photos((32, 32), (24, 40), (32, 32)))[1]
    keep = torch.ones(len(features.values), dtype=torch.bool)
    keep[features.offsets[2] :] = False
    logits = model.run(features.select(keep))[0]
    assert torch.allclose(logits[:2], model.run(features)[0][:2], atol=1e-5)
    assert torch.allclose(logits[2], model.run(features.select(keep & False))[0][0], atol=1e-5)


@torch.no_grad()
def test_attention_is_what_the_block_computed(make: Callable[..., PlainViT], photos: Photos) -> None:
    """Its own scale, 0.5 in place of 1 / √16, is in the maps."""
    vit = make()
    [image] = photos((32, 32))
    maps = spit.wrap(vit, "patch")(image, record=("attention",)).attention[0][0]
    rows = vit.patches((image[None] - 0.5) / 0.25).flatten(2).transpose(1, 2) + vit.table
    rows = vit.blocks[0].norm(torch.cat([vit.first[None], rows], 1))
    query, key, _ = vit.blocks[0].qkv(rows).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
    assert torch.allclose(maps, (query @ key.mT * 0.5).softmax(-1)[0], atol=1e-5)


def test_the_backbone_is_shared_and_not_changed(make: Callable[..., PlainViT], photos: Photos) -> None:
    vit = make()
    before = copy.deepcopy(vit.state_dict())
    model = spit.wrap(vit)
    other = model.with_tokenizer("voronoi", cells=9)
    images = photos((32, 32))
    logits = other(images)
    assert not vit.training
    assert all(torch.equal(before[name], tensor) for name, tensor in vit.state_dict().items())
    assert {id(one) for one in vit.parameters()} == {id(one) for one in model.parameters()}
    with torch.no_grad():
        vit.head.bias += 1
    assert torch.allclose(other(images), logits + 1, atol=1e-5)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        vit.head.bias += 1
    assert not torch.allclose(twin(images), model(images), atol=0.5)


def test_answers(make: Callable[..., PlainViT]) -> None:
    from skimage import data

    photo = data.astronaut()[100:164, 180:260]
    for prefix in (0, 2):
        prediction = spit.Predictor(spit.wrap(make(prefix=prefix)))(photo, crop=False)
        assert len(prediction.top(5)[0]) == 5
        assert prediction.segment().mask.shape == (1, 64, 80)
        for method in ("relevance", "token_rise", "flow", "rollout"):
            assert prediction.explain(method).shape == (1, 64, 80)


def test_a_transfer_gets_a_new_head(make: Callable[..., PlainViT], photos: Photos) -> None:
    model = spit.wrap(make())
    model.reset_classifier(3)
    assert model(photos((32, 32), (24, 40))).shape == (2, 3)
    assert {name for name, _ in model.named_parameters() if name.startswith("head")} == {"head.linear.weight",
                                                                                         "head.linear.bias"}


def test_attention_that_is_not_torchs(make: Callable[..., PlainViT], photos: Photos) -> None:
    """Images of one length need nothing; a ragged batch would leak, and is refused."""
    model = spit.wrap(make(fused=False))
    assert model(photos((32, 32))).shape == (1, 5)
    with pytest.raises(ValueError, match="one by one"):
        model(photos((32, 48), (16, 16)))
    with pytest.raises(ValueError, match="does not report its attention"):
        model(photos((32, 32)), record=("attention",))
    prediction = spit.Predictor(model)([(one * 255).byte() for one in photos((32, 48), (16, 16))], crop=False)
    assert prediction.logits.shape == (2, 5)  # on a CPU each image is alone
    assert len(prediction.segment().mask) == 2
    with pytest.raises(ValueError, match="such as lime"):
        prediction.explain("relevance")


def test_dropout_of_attention_in_ragged_training(make: Callable[..., PlainViT], photos: Photos) -> None:
    model = spit.wrap(make(dropout=0.1)).train()
    assert model(photos((32, 32))).shape == (1, 5)
    with pytest.raises(ValueError, match="dropout to 0"):
        model(photos((32, 48), (16, 16)))
    model = spit.wrap(make()).train()
    model.backbone.module.blocks[1].drop_prob = 0.2
    with pytest.raises(ValueError, match="drop path to 0"):
        model(photos((32, 48), (16, 16)))


def test_refusals(make: Callable[..., PlainViT], photos: Photos, tmp_path: Any) -> None:
    vit = make()
    with pytest.raises(TypeError, match=r"no seam for torch\.nn\.modules\.linear\.Linear.*spit\.pool"):
        spit.wrap(nn.Linear(2, 2))
    with pytest.raises(TypeError, match=r"but for a part of it: spit\.wrap\(model\.1\)"):
        spit.wrap(nn.Sequential(nn.Identity(), vit))
    with pytest.raises(ValueError, match="class_names for 5 classes, got 2"):
        spit.wrap(vit, class_names=("a", "b"))
    with pytest.raises(TypeError, match="got str"):
        spit.wrap("vit")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="with_tokenizer"):
        spit.wrap(spit.wrap(vit))
    with pytest.raises(ValueError, match=r"\.eval\(\)"):
        spit.wrap(make().train())
    with pytest.raises(ValueError, match="crop, window, pool"):
        spit.wrap(vit, embed="cut")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="centroid, average"):
        spit.wrap(vit, place="corner")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="3 channels"):
        spit.wrap(vit, mean=(0.5,))
    with pytest.raises(ValueError, match="std above 0"):
        spit.wrap(vit, std=(1, 1, 0))
    with pytest.raises(TypeError, match=r"spit\.seams\.Seam"):
        spit.register_seam(nn.Linear, nn.Linear)  # type: ignore[arg-type]
    model = spit.wrap(vit)
    with pytest.raises(ValueError, match="3 channels"):
        model(photos((32, 32), channels=1))
    with pytest.raises(WeightsError, match="cannot be made again"):
        spit.save_model(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()
    with pytest.raises(TypeError, match="compile"):
        model.compile()
    with pytest.raises(ValueError, match="parameters of 'wrapped'"):
        model.with_backbone("merging")
    vit.train()
    with pytest.raises(ValueError, match=r"model\.eval\(\)"):
        model(photos((32, 32)))


def test_a_seam_that_reads_its_family_wrongly(make: Callable[..., PlainViT]) -> None:
    spit.register_seam(PlainViT, WrongSeam)
    with pytest.raises(WeightsError, match=r"tokens of PlainViT .* within 3\.\de-04 .*, got a difference of"):
        spit.wrap(make())


def test_a_seam_covers_subclasses(make: Callable[..., PlainViT]) -> None:
    class Variant(PlainViT):
        pass

    assert spit.wrap(Variant().eval()).prefix == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
@torch.no_grad()
def test_on_a_gpu(make: Callable[..., PlainViT], photos: Photos) -> None:
    vit = make()
    model = spit.wrap(vit)
    images = photos((32, 48), (40, 24), (32, 48))
    expected = model(images)
    model.cuda()
    assert next(vit.parameters()).is_cuda
    assert torch.allclose(model([image.cuda() for image in images]).cpu(), expected, atol=1e-4)
    with pytest.raises(ValueError, match="where the model is"):
        model(images)
    with torch.autocast("cuda", torch.bfloat16):
        assert torch.allclose(model([image.cuda() for image in images]).float().cpu(), expected, atol=0.1)
