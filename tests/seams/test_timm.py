"""timm's plain ViTs behind spit.wrap: a sample of the names in docs/backbones.md."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spit
from spit.errors import WeightsError
from spit.partition import Partition
from spit.seams.timm import TimmBeit, TimmDistilled, TimmEva, TimmViT

NAMES = {  # name: seam, prefix, whether attention is reported
    "vit_tiny_patch16_224": (TimmViT, 1, True),
    "vit_small_patch32_224": (TimmViT, 1, True),
    "vit_small_patch8_224": (TimmViT, 1, True),
    "vit_wee_patch16_reg1_gap_256": (TimmViT, 1, True),
    "vit_little_patch16_reg4_gap_256": (TimmViT, 4, True),
    "vit_medium_patch16_gap_240": (TimmViT, 0, True),
    "vit_small_patch14_dinov2": (TimmViT, 1, True),
    "vit_small_patch14_reg4_dinov2": (TimmViT, 5, True),
    "vit_xsmall_patch16_clip_224": (TimmViT, 1, True),
    "vit_base_patch32_clip_quickgelu_224": (TimmViT, 1, True),
    "vit_base_patch16_siglip_224": (TimmViT, 0, True),
    "vit_base_patch16_siglip_gap_224": (TimmViT, 0, True),
    "vit_base_patch16_rpn_224": (TimmViT, 0, True),
    "vit_base_patch16_xp_224": (TimmViT, 1, True),
    "vit_small_patch16_18x2_224": (TimmViT, 1, True),
    "aimv2_large_patch14_224": (TimmViT, 0, True),
    "flexivit_small": (TimmViT, 1, True),
    "deit_tiny_distilled_patch16_224": (TimmDistilled, 2, True),
    "deit3_small_patch16_224": (TimmViT, 1, True),
    "eva02_tiny_patch14_224": (TimmEva, 1, True),
    "vit_small_patch16_dinov3": (TimmEva, 5, True),
    "vit_pe_core_tiny_patch16_384": (TimmEva, 1, True),
    "vit_small_patch16_rope_224": (TimmEva, 1, True),
    "vit_small_patch16_rope_mixed_ape_224": (TimmEva, 1, True),
    "beit_base_patch16_224": (TimmBeit, 1, False),
    "beitv2_base_patch16_224": (TimmBeit, 1, False),
}


@pytest.fixture
def create(timm: Any, randomised: Callable[[nn.Module], nn.Module]) -> Callable[..., Any]:
    return lambda name, **options: randomised(timm.create_model(name, **{"depth": 2, **options}))


def normalised(model: Any, images: Tensor) -> Tensor:
    mean, std = (torch.tensor(values)[:, None, None] for values in (model.embedder.mean, model.embedder.std))
    return (images - mean) / std


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_a_wrapped_backbone_is_itself_on_squares(
        name: str, create: Callable[..., Any], photos: Callable[..., list[Tensor]],
        shuffled_squares: Callable[[int, int, int], Partition]) -> None:
    """Squares in order and in any other order; ragged batches as each image alone; attention as it says."""
    seam, prefix, reports = NAMES[name]
    vit = create(name)
    before = {key: tensor.clone() for key, tensor in vit.state_dict().items()}
    model = spit.wrap(vit)
    assert type(model.backbone.seam) is seam
    assert model.prefix == prefix
    squares = model.with_tokenizer("patch")
    [image] = photos(model.backbone.seam.size)
    expected = vit(normalised(model, image[None]))
    largest = max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(squares(image), expected, rtol=0, atol=2e-5 * largest)
    shuffled = model.with_tokenizer(
        lambda _: shuffled_squares(*model.backbone.seam.size, model.extractor.patch))
    torch.testing.assert_close(shuffled(image), expected, rtol=0, atol=2e-5 * largest)

    side = model.extractor.patch
    ragged = photos((3 * side, 5 * side), (4 * side, 4 * side), (3 * side, 5 * side + 3))
    together = model(ragged)
    alone = torch.cat([model([one]) for one in ragged])
    torch.testing.assert_close(together, alone, rtol=0, atol=2e-5 * max(1.0, float(alone.abs().max())))
    if reports:
        out = model(ragged, record=("attention", "features"))
        assert [*out.attention] == [0, 1]
        rows = [count + prefix for count in out.partition.counts.tolist()]
        assert [one.shape[-1] for one in out.attention[1]] == rows
        for maps in out.attention[1]:
            torch.testing.assert_close(maps.sum(-1), torch.ones(maps.shape[:2]))
        assert torch.allclose(out.logits, together, atol=2e-5 * largest)
        assert len(out.tokens.values) == int(out.partition.counts.sum())
    else:
        with pytest.raises(ValueError, match="does not report its attention"):
            model(ragged, record=("attention",))
    assert all(torch.equal(tensor, before[key]) for key, tensor in vit.state_dict().items())


@torch.no_grad()
def test_squares_are_exact_at_other_sizes(create: Callable[..., Any], photos: Callable[..., list[Tensor]]) -> None:
    """The module resamples its own table; so does the seam."""
    for name in ("vit_tiny_patch16_224", "vit_small_patch16_dinov3"):
        vit = create(name, dynamic_img_size=True)
        model = spit.wrap(vit).with_tokenizer("patch")
        [image] = photos((160, 96))
        torch.testing.assert_close(model(image), vit(normalised(model, image[None])), rtol=1e-4, atol=2e-5)


def test_training_reaches_every_parameter(create: Callable[..., Any], photos: Callable[..., list[Tensor]]) -> None:
    vit = create("vit_tiny_patch16_224", depth=1, num_classes=3)
    model = spit.wrap(vit).train()
    model(photos((64, 64), (48, 80))).square().sum().backward()
    assert [name for name, parameter in vit.named_parameters() if parameter.grad is None] == []
    assert [*dict(model.named_parameters())] == [f"backbone.module.{name}" for name, _ in vit.named_parameters()]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", ["vit_small_patch14_reg4_dinov2", "vit_small_patch16_dinov3",
                                  "vit_base_patch16_siglip_224"])
def test_answers_of_other_peoples_models(name: str, create: Callable[..., Any]) -> None:
    """Registers, RoPE, no class token: masks and correspondences, and explanations if there are classes."""
    from skimage import data

    photo = data.astronaut()[100:180, 180:276]
    model = spit.wrap(create(name, num_classes=5))
    prediction = spit.Predictor(model)(photo, crop=False)
    assert prediction.segment().mask.shape == (1, 80, 96)
    for method in ("relevance", "token_rise", "flow", "rollout", "random"):
        heat = prediction.explain(method)
        assert heat.shape == (1, 80, 96)
        assert len(heat.unique()) > 3, method
    image = torch.from_numpy(photo.copy()).movedim(-1, 0)
    found = spit.correspond(model, image, image[None].flip(-1))
    assert (found.source.shape, found.targets.shape) == ((80, 96, 3), (1, 80, 96, 3))
    headless = spit.Predictor(spit.wrap(create(name, num_classes=0)))(photo, crop=False)
    assert headless.segment().saliency.shape == (1, 80, 96)
    with pytest.raises(ValueError, match="without a head"):
        headless.explain("relevance")


def test_a_model_is_saved_with_its_backbone(create: Callable[..., Any], photos: Callable[..., list[Tensor]],
                                            tmp_path: Any) -> None:
    model = spit.wrap(create("vit_small_patch16_dinov3", num_classes=4), embed="window", place="average")
    again = spit.load_model(spit.save_model(model, tmp_path / "model"))
    images = photos((64, 80))
    assert again.config == model.config
    assert torch.equal(model(images), again(images))
    fresh = spit.load_model(tmp_path / "model", num_classes=7)
    assert fresh(images).shape == (1, 7)
    kept = spit.load_model(spit.save_model(fresh, tmp_path / "other"))
    assert torch.equal(fresh(images), kept(images))


def test_a_changed_backbone_is_not_saved(create: Callable[..., Any], tmp_path: Any) -> None:
    vit = create("vit_tiny_patch16_224")
    vit.blocks[0].mlp = nn.Identity()
    with pytest.raises(WeightsError, match="changed"):
        spit.save_model(spit.wrap(vit), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_backbone_that_computes_something_else(create: Callable[..., Any]) -> None:
    class Louder(type(create("vit_tiny_patch16_224"))):  # type: ignore[misc]
        def forward_features(self, images: Tensor) -> Tensor:
            return 1.01 * super().forward_features(images)

    vit = create("vit_tiny_patch16_224")
    vit.__class__ = Louder
    with pytest.raises(WeightsError, match="tokens of Louder on square patches within"):
        spit.wrap(vit)


@torch.no_grad()
def test_from_timm_and_wrap_are_one_model(create: Callable[..., Any], photos: Callable[..., list[Tensor]]) -> None:
    vit = create("vit_tiny_patch16_224", num_classes=9)
    ours, theirs = spit.from_timm(vit).with_tokenizer("superpixel"), spit.wrap(vit)
    assert ours.tokenizer == theirs.tokenizer
    images = torch.stack(photos((224, 224), (224, 224)))
    expected = theirs(images)
    torch.testing.assert_close(ours(images), expected, rtol=0, atol=1e-5 * max(1.0, float(expected.abs().max())))


@torch.no_grad()
def test_by_name(create: Callable[..., Any], tmp_path: Any, photos: Callable[..., list[Tensor]]) -> None:
    """timm's own folders; its hub is not asked."""
    from timm.models import save_for_hf

    vit = create("vit_tiny_patch16_224", num_classes=3)
    save_for_hf(vit, tmp_path / "folder", safe_serialization=True)
    predictor = spit.load(f"timm:local-dir:{tmp_path / 'folder'}", device="cpu")
    assert torch.allclose(predictor.model(photos((64, 64))), spit.wrap(vit)(photos((64, 64))), atol=1e-5)
    with pytest.raises(WeightsError, match="no weights of 'vit_nonsense'"):
        spit.load("timm:vit_nonsense")


def test_the_head_is_known(create: Callable[..., Any]) -> None:
    """Prototypes and other people's trainers ask for it."""
    from spit.attribution import fit_prototypes

    vit = create("vit_tiny_patch16_224", num_classes=3)
    model = spit.wrap(vit)
    assert model.get_classifier() is vit.head
    assert fit_prototypes(model, torch.rand(4, 3, 32, 32), labels=[0, 0, 1, 2]).counts.tolist() == [2, 1, 1]
    two = spit.wrap(create("deit_tiny_distilled_patch16_224"))
    assert isinstance(two.get_classifier(), nn.Identity)
    with pytest.raises(ValueError, match="one linear layer"):
        fit_prototypes(two, torch.rand(1, 3, 32, 32))
