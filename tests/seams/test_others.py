"""torchvision, open_clip, DINO from torch.hub, and timm inside transformers; what is not installed is skipped."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spit
from libraries import load
from spit.images import Images

PATCH, SIDE = 8, 32
SIZES = [(32, 32), (48, 32), (40, 64)]


def torchvision(**options: Any) -> nn.Module:
    module: nn.Module = load("torchvision.models").VisionTransformer(SIDE, PATCH, 2, 2, 32, 48, **options)
    return module


def open_clip(**options: Any) -> nn.Module:
    module: nn.Module = load("open_clip.transformer").VisionTransformer(SIDE, PATCH, 32, 2, 2, 2.0, output_dim=12,
                                                                        **options)
    return module


def dinov2(**options: Any) -> nn.Module:
    module: nn.Module = load("dinov2.models.vision_transformer").DinoVisionTransformer(
        img_size=SIDE, patch_size=PATCH, embed_dim=32, depth=2, num_heads=2, **options)
    return module


def dinov3(**options: Any) -> nn.Module:
    module = load("dinov3.models.vision_transformer").DinoVisionTransformer(
        img_size=SIDE, patch_size=PATCH, embed_dim=32, depth=2, num_heads=2, layerscale_init=1.0, **options)
    module.init_weights()
    return module  # type: ignore[no-any-return]


BUILDS: dict[str, Callable[[], nn.Module]] = {
    "torchvision": lambda: torchvision(num_classes=5),
    "torchvision, two layers of a head": lambda: torchvision(num_classes=5, representation_size=12),
    "open_clip": open_clip,
    "open_clip, mean": lambda: open_clip(pool_type="avg"),
    "open_clip, norm after the mean": lambda: open_clip(pool_type="avg", final_ln_after_pool=True),
    "open_clip, tokens too": lambda: open_clip(output_tokens=True),
    "open_clip, normalised queries": lambda: open_clip(qk_norm=True),
    "dinov2": lambda: dinov2(block_chunks=0, num_register_tokens=3),
    "dinov2, chunks": lambda: dinov2(block_chunks=2, init_values=1.0),
    "dinov3": lambda: dinov3(n_storage_tokens=3, pos_embed_rope_dtype="fp32"),
    "dinov3, half": lambda: dinov3(pos_embed_rope_dtype="bf16"),
}


def make(name: str) -> nn.Module:
    """A module with weights that make every part matter."""
    module = BUILDS[name]().eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for key, weight in module.named_parameters():
            large = any(word in key for word in ("pos", "token", "class_embedding"))
            weight.normal_(0, 0.5 if large else 0.05 if weight.ndim > 1 else 0.3, generator=random)
            if weight.ndim == 1 and ("norm" in key or "ln" in key) and key.endswith("weight"):
                weight.add_(1)
    return module


def pictures(*sizes: tuple[int, int]) -> list[Tensor]:
    random = torch.Generator().manual_seed(1)
    return [torch.rand(3, *size, generator=random) for size in sizes]


def own_answer(model: spit.SpitModel, module: nn.Module, images: Tensor) -> Tensor:
    mean, std = (torch.tensor(values)[:, None, None] for values in (model.embedder.mean, model.embedder.std))
    out = module((images - mean) / std)
    return out[0] if isinstance(out, tuple) else out


def shuffled_squares(images: Images) -> spit.Partition:
    partition = spit.PatchTokenizer(PATCH)(images)
    count = partition.host_counts[0]
    order = torch.randperm(count, generator=torch.Generator().manual_seed(2)).int()
    return spit.Partition.of(order[partition.labels.long()], [count] * len(partition))


@pytest.mark.parametrize("name", BUILDS)
def test_squares_are_the_modules_own_in_any_order(name: str) -> None:
    module = make(name)
    model = spit.wrap(module, "patch")
    images = torch.stack(pictures((SIDE, SIDE), (SIDE, SIDE)))
    with torch.no_grad():
        expected = own_answer(model, module, images)
        torch.testing.assert_close(model(images), expected, rtol=0, atol=2e-5)
        torch.testing.assert_close(model.with_tokenizer(shuffled_squares)(images), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", BUILDS)
def test_ragged_batches_are_images_alone(name: str) -> None:
    model = spit.wrap(make(name)).with_tokenizer("superpixel", levels=3)
    images = pictures(*SIZES)
    with torch.no_grad():
        batch = model(images, record=("attention", "features"))
        alone = torch.cat([model([image]) for image in images])
        torch.testing.assert_close(batch.logits, alone, rtol=0, atol=1e-5)
        assert torch.equal(batch.logits, model(images))
    counts = [count + model.prefix for count in batch.partition.host_counts]
    assert len(set(counts)) > 1
    assert [maps.shape for maps in batch.attention[1]] == [(2, count, count) for count in counts]
    torch.testing.assert_close(batch.attention[0][1].sum(-1), torch.ones(2, counts[1]))


@pytest.mark.parametrize("name", BUILDS)
def test_gradients_reach_what_the_modules_own_do(name: str) -> None:
    module = make(name)
    model = spit.wrap(module)
    own_answer(model, module, torch.stack(pictures((SIDE, SIDE)))).square().sum().backward()
    reached = {key for key, weight in module.named_parameters() if weight.grad is not None and weight.grad.any()}
    module.zero_grad()
    model(pictures(*SIZES)).square().sum().backward()
    assert reached == {key for key, weight in module.named_parameters()
                       if weight.grad is not None and weight.grad.any()}


@pytest.mark.parametrize("name", [name for name in BUILDS if name.startswith("dino")])
def test_squares_of_another_size(name: str) -> None:
    module = make(name)
    model = spit.wrap(module, "patch")
    images = torch.stack(pictures((48, 64)))
    with torch.no_grad():
        torch.testing.assert_close(model(images), own_answer(model, module, images), rtol=0, atol=2e-5)


def test_recorded_attention_of_one_length_is_that_of_ragged_batches() -> None:
    """``torch.nn.MultiheadAttention`` answers an image alone by itself, and packed images through WatchedAttention."""
    model = spit.wrap(make("torchvision"), "patch")
    small, large = pictures((SIDE, SIDE), (48, 64))
    with torch.no_grad():
        alone = model([small], record=("attention",))
        batch = model([small, large], record=("attention",))
    torch.testing.assert_close(alone.attention[1][0], batch.attention[1][0], rtol=0, atol=1e-6)
    torch.testing.assert_close(alone.logits[0], batch.logits[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("options", [{"attentional_pool": True, "attn_pooler_heads": 2}, {"pool_type": "none"}])
def test_other_pools_of_open_clip_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"pools by its class token or the mean, got (attention pooling|'none')"):
        spit.wrap(open_clip(**options).eval())


def test_colours_of_open_clip() -> None:
    module = open_clip().eval()
    assert spit.wrap(module).embedder.mean == pytest.approx((0.481, 0.458, 0.408), abs=1e-3)
    module.image_mean, module.image_std = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
    assert spit.wrap(module).embedder.std == (0.25, 0.25, 0.25)


def test_a_stem_of_convolutions_is_refused() -> None:
    config = load("torchvision.models.vision_transformer").ConvStemConfig(16, 3, 2)
    with pytest.raises(TypeError, match=r"patch embedding is one convolution, got Sequential; spit.pool"):
        spit.wrap(torchvision(conv_stem_configs=[config] * 3).eval())


def test_a_dinov3_with_two_norms_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a DINOv3 with one final norm"):
        spit.wrap(dinov3(untie_cls_and_patch_norms=True).eval())


@pytest.mark.parametrize("name", ["TimmWrapperModel", "TimmWrapperForImageClassification"])
def test_timm_inside_transformers(name: str) -> None:
    load("timm")
    transformers = pytest.importorskip("transformers")
    options = {"img_size": SIDE, "patch_size": PATCH, "embed_dim": 32, "depth": 2, "num_heads": 2}
    config = transformers.TimmWrapperConfig(architecture="vit_tiny_patch16_224", num_labels=5, model_args=options,
                                            pretrained_cfg={"mean": (0.1, 0.2, 0.3), "std": (0.5, 0.5, 0.5)})
    module = getattr(transformers, name)(config).eval()
    model = spit.wrap(module, "patch")
    assert model.embedder.mean == (0.1, 0.2, 0.3)
    images = torch.stack(pictures((SIDE, SIDE)))
    with torch.no_grad():
        torch.testing.assert_close(model(images), own_answer(model, module.timm_model, images), rtol=0, atol=2e-5)
        ragged = model.with_tokenizer("superpixel", levels=3)(pictures(*SIZES))
    assert ragged.shape == (3, 5 if "Classification" in name else 32)
