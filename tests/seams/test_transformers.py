"""Every class of transformers in the table: squares, order, ragged batches, sizes, gradients, attention, saving."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spit
from spit.errors import WeightsError
from spit.images import Images
from spit.seams.names import NAMES
from spit.seams.seam import Seam, find_seam
from spit.seams.transformers import module_of

transformers = pytest.importorskip("transformers")

PATCH, SIDE = 8, 32
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
SIZED = {**SMALL, "image_size": SIDE, "patch_size": PATCH}
CELLS = {**SMALL, "num_patches": (SIDE // PATCH) ** 2, "patch_size": PATCH}
OPTIONS: dict[str, dict[str, Any]] = {  # by the config's class
    "ViTMAEConfig": {**SIZED, "mask_ratio": 0.75},
    "Dinov2Config": {**SIZED, "mlp_ratio": 2, "use_swiglu_ffn": True},
    "Dinov2WithRegistersConfig": {**SIZED, "mlp_ratio": 2, "num_register_tokens": 3},
    "DINOv3ViTConfig": {**SIZED, "num_register_tokens": 3},
    "CLIPVisionConfig": {**SIZED, "projection_dim": 24},
    "SiglipConfig": {"vision_config": SIZED},
    "Siglip2VisionConfig": CELLS,
    "Siglip2Config": {"vision_config": CELLS},
    "BeitConfig": {**SIZED, "use_relative_position_bias": True},
    "Data2VecVisionConfig": {**SIZED, "use_shared_relative_position_bias": True},
}
BIASED = ("Beit", "Data2Vec")
SIZES = [(32, 32), (48, 32), (40, 64)]


def make(name: str, **changes: Any) -> Any:
    """A module of a class, with weights that make every part matter."""
    cls = getattr(transformers, name)
    arguments = {key: changes.pop(key) for key in ("add_pooling_layer", "attn_implementation") if key in changes}
    classes = {"num_labels": 5} if name.endswith(("Classification", "Teacher")) else {}
    config = cls.config_class(**{**OPTIONS.get(cls.config_class.__name__, SIZED), **classes, **changes})
    config._attn_implementation = arguments.pop("attn_implementation", "sdpa")
    module = cls(config, **arguments).eval()
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for key, weight in module.named_parameters():
            large = any(word in key for word in ("position", "token", "class_embedding", "probe"))
            weight.normal_(0, 0.5 if large else 0.05 if weight.ndim > 1 else 0.3, generator=random)
            if weight.ndim == 1 and "norm" in key and key.endswith("weight"):
                weight.add_(1)
    return module


@cache
def wrapped(name: str) -> tuple[Any, spit.SpitModel]:
    """A module, and a model of spit with its weights, on squares."""
    module = make(name)
    return module, spit.wrap(module, "patch")


def pictures(*sizes: tuple[int, int]) -> list[Tensor]:
    random = torch.Generator().manual_seed(1)
    return [torch.rand(3, *size, generator=random) for size in sizes]


def normalized(seam: Seam, images: Tensor) -> Tensor:
    mean, std = (torch.tensor(values)[:, None, None] for values in (seam.mean, seam.std))
    return (images - mean) / std


def patches_of(images: Tensor) -> Tensor:
    """Square patches, pixels in the order rows, columns, channels, one by one."""
    rows, columns = (side // PATCH for side in images.shape[-2:])
    return torch.stack([torch.stack([
        image[:, PATCH * y : PATCH * (y + 1), PATCH * x : PATCH * (x + 1)].permute(1, 2, 0).flatten()
        for y in range(rows) for x in range(columns)]) for image in images])


def own_answer(name: str, module: Any, pixels: Tensor, **options: Any) -> Tensor:
    """What a module says of normalised images, by the rule that the docs state."""
    if name.startswith("Siglip2"):
        cells = torch.tensor([[side // PATCH for side in pixels.shape[-2:]]] * len(pixels))
        patches = patches_of(pixels)
        out = module(patches, spatial_shapes=cells, pixel_attention_mask=torch.ones(patches.shape[:2]).int())
    elif name == "ViTMAEModel":
        every = make(name, mask_ratio=0.0)
        every.load_state_dict(module.state_dict())
        cells = pixels.shape[-2] * pixels.shape[-1] // PATCH**2
        out = every(pixels, noise=torch.arange(cells).float().repeat(len(pixels), 1), **options)
    else:
        out = module(pixels, **options)
    for key in ("logits", "image_embeds", "pooler_output"):
        if getattr(out, key, None) is not None:
            return getattr(out, key)
    rows = out.last_hidden_state
    return rows.mean(1) if name.startswith("IJepa") else rows[:, 0]


def shuffled_squares(images: Images) -> spit.Partition:
    partition = spit.PatchTokenizer(PATCH)(images)
    random = torch.Generator().manual_seed(2)
    count = partition.host_counts[0]
    order = torch.randperm(count, generator=random).int()
    return spit.Partition.of(order[partition.labels.long()], [count] * len(partition))


@pytest.mark.parametrize("name", NAMES)
def test_squares_are_the_modules_own(name: str) -> None:
    module, model = wrapped(name)
    images = torch.stack(pictures((SIDE, SIDE), (SIDE, SIDE)))
    with torch.no_grad():
        expected = own_answer(name, module, normalized(model.backbone.seam, images))
        torch.testing.assert_close(model(images), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_tokens_does_not_matter(name: str) -> None:
    _, model = wrapped(name)
    images = torch.stack(pictures((SIDE, SIDE), (SIDE, SIDE)))
    with torch.no_grad():
        torch.testing.assert_close(model.with_tokenizer(shuffled_squares)(images), model(images), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_ragged_batches_are_images_alone(name: str) -> None:
    model = wrapped(name)[1].with_tokenizer("superpixel", levels=3)
    images = pictures(*SIZES)
    with torch.no_grad():
        batch = model(images, record=())
        assert len(set(batch.partition.host_counts)) > 1
        alone = torch.cat([model([image]) for image in images])
    torch.testing.assert_close(batch.logits, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(BIASED)])
def test_squares_of_another_size(name: str) -> None:
    module, model = wrapped(name)
    images = torch.stack(pictures((48, 64)))
    options = {} if name.startswith(("Dinov2", "DINOv3", "Siglip2", "Aimv2")) else {"interpolate_pos_encoding": True}
    if name == "Aimv2VisionModel":  # else its class takes one size
        module = make(name, is_native=True)
        model = spit.wrap(module, "patch")
    with torch.no_grad():
        expected = own_answer(name, module, normalized(model.backbone.seam, images), **options)
        torch.testing.assert_close(model(images), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_attention_is_recorded_or_refused(name: str) -> None:
    model = wrapped(name)[1].with_tokenizer("superpixel", levels=3)
    images = pictures(*SIZES)
    with torch.no_grad():
        if name.startswith(BIASED):
            with pytest.raises(ValueError, match="does not report its attention"):
                model(images, record=("attention",))
            return
        out = model(images, record=("attention", "features"))
        assert torch.equal(out.logits, model(images))
    counts = [count + model.prefix for count in out.partition.host_counts]
    assert [maps.shape for maps in out.attention[1]] == [(2, count, count) for count in counts]
    torch.testing.assert_close(out.attention[0][1].sum(-1), torch.ones(2, counts[1]))
    assert out.features[1].values.shape == (sum(counts), 32)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_what_the_modules_own_do(name: str) -> None:
    module = make(name)
    own_answer(name, module, torch.stack(pictures((SIDE, SIDE)))).square().sum().backward()
    reached = {key for key, weight in module.named_parameters() if weight.grad is not None and weight.grad.any()}
    module.zero_grad()
    spit.wrap(module)(pictures(*SIZES)).square().sum().backward()
    mine = {key for key, weight in module.named_parameters() if weight.grad is not None and weight.grad.any()}
    assert (mine == reached and mine) or name == "ViTMAEModel"  # whose own answer is here that of a copy


def test_parameters_are_shared() -> None:
    module, model = wrapped("ViTModel")
    assert {id(weight) for weight in model.parameters()} == {id(weight) for weight in module.parameters()}


@pytest.mark.parametrize("name", NAMES)
def test_a_module_is_made_again(name: str) -> None:
    module, model = wrapped(name)
    options = json.loads(json.dumps(model.backbone.seam.source_options()))
    library, _, stored = options["source"].partition(":")
    assert (library, stored) == ("hf", name)
    again = module_of(stored, options["options"])
    again.load_state_dict(module.state_dict())
    assert type(again) is type(module)
    images = torch.stack(pictures((SIDE, SIDE)))
    with torch.no_grad():
        assert torch.equal(spit.wrap(again, "patch")(images), model(images))


def test_what_is_stored_is_small() -> None:
    module = make("ViTForImageClassification", num_labels=1000)
    assert len(json.dumps(find_seam(module).source_options())) < 1000


@pytest.mark.parametrize(("name", "options", "message"), [
    ("GPT2Model", {}, "expected one of ViTModel, .* got 'GPT2Model'"),
    ("ViTModel", {"hidden_sise": 32}, "make a ViTModel, got others: it has no option hidden_sise"),
    ("ViTModel", {"attn_implementation": "someone/kernel"}, "it has no option attn_implementation"),
    ("ViTModel", {"_attn_implementation": "someone/kernel"}, "it has no option _attn_implementation"),
    ("ViTModel", {"auto_map": {"AutoModel": "someone/code"}}, "it has no option auto_map"),
    ("ViTModel", {"hidden_size": "wide"}, "make a ViTModel, got others: .*hidden_size"),
    ("ViTModel", {"hidden_act": "nothing"}, "make a ViTModel, got others: .*nothing"),
    ("Dinov2Model", {"add_pooling_layer": True}, "it has no option add_pooling_layer"),
])
def test_what_does_not_make_a_module(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        module_of(name, options)
    assert "\n" not in str(caught.value)


def test_attention_code_of_a_file_is_not_fetched() -> None:
    options = {**SIZED, "attn_implementation": "some/kernel"}
    module = module_of("SiglipForImageClassification", {"vision_config": options})
    assert module.vision_model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("name", ["ViTModel", "DeiTModel", "BeitModel"])
def test_without_a_pooler_the_answer_is_the_class_token(name: str) -> None:
    module = make(name, add_pooling_layer=False)
    model = spit.wrap(module, "patch")
    images = torch.stack(pictures((SIDE, SIDE)))
    with torch.no_grad():
        rows = module(normalized(model.backbone.seam, images)).last_hidden_state
        torch.testing.assert_close(model(images), rows[:, 0], rtol=0, atol=2e-5)
    assert find_seam(module).source_options()["options"]["add_pooling_layer"] is False


@pytest.mark.parametrize("name", ["BeitModel", "Data2VecVisionModel"])
@pytest.mark.parametrize("kinds", [(), ("relative",), ("shared_relative",), ("relative", "shared_relative"),
                                   ("absolute",)])
def test_positions_of_beit(name: str, kinds: tuple[str, ...]) -> None:
    chosen = {f"use_{kind}_position_{'embeddings' if kind == 'absolute' else 'bias'}": kind in kinds
              for kind in ("relative", "shared_relative", "absolute")}
    module = make(name, **chosen, use_mean_pooling=False)
    model = spit.wrap(module, "patch")
    assert model.backbone.seam.biased == any("relative" in kind for kind in kinds)
    images = torch.stack(pictures((SIDE, SIDE)))
    with torch.no_grad():
        expected = own_answer(name, module, normalized(model.backbone.seam, images))
        torch.testing.assert_close(model.with_tokenizer(shuffled_squares)(images), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("change", ["encoder.layers.0.layer_norm1", "post_layernorm", "pre_layrnorm"])
def test_norms_keep_their_eps(change: str) -> None:
    module = make("CLIPVisionModel")
    plain = spit.wrap(module, "patch")
    images = torch.stack(pictures((SIDE, SIDE)))
    with torch.no_grad():
        before = plain(images)
        inner = plain.backbone.module
        inner.get_submodule(change).eps = 0.3
        after = plain(images)
        expected = own_answer("CLIPVisionModel", inner, normalized(plain.backbone.seam, images))
        torch.testing.assert_close(after, expected, rtol=0, atol=2e-5)
    assert (before - after).abs().max() > 1e-3


def test_the_mask_ratio_stays() -> None:
    module, _ = wrapped("ViTMAEModel")
    assert module.config.mask_ratio == 0.75


def test_eager_attention_takes_images_of_equal_counts() -> None:
    model = spit.wrap(make("ViTModel", attn_implementation="eager"), "patch")
    with torch.no_grad():
        torch.testing.assert_close(model(torch.stack(pictures((SIDE, SIDE)))),
                                   wrapped("ViTModel")[1](torch.stack(pictures((SIDE, SIDE)))), rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="expected blocks that call torch's scaled_dot_product_attention"):
        model.with_tokenizer("superpixel", levels=3)(pictures(*SIZES))


def test_eager_attention_with_a_bias_is_refused() -> None:
    with pytest.raises(ValueError, match="that call torch's scaled_dot_product_attention, got BeitLayer"):
        spit.wrap(make("BeitModel", attn_implementation="eager"))


def test_recomputed_blocks_are_refused() -> None:
    module = make("ViTModel")
    module.gradient_checkpointing_enable()
    model = spit.wrap(module).train()
    with pytest.raises(ValueError, match=r"call model.backbone.module.gradient_checkpointing_disable\(\)"):
        model(pictures(*SIZES))
    model.backbone.module.gradient_checkpointing_disable()
    model(pictures(*SIZES)).sum().backward()


def test_rotations_between_cells_are_as_long_as_those_of_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half precision rounds sines and cosines, so their squares do not add up to 1."""
    module = make("DINOv3ViTModel")
    rope: Callable[[Tensor], tuple[Tensor, Tensor]] = module.rope_embeddings.forward
    monkeypatch.setattr(module.rope_embeddings, "forward", lambda image: tuple(1.01 * part for part in rope(image)))
    model = spit.wrap(module, "patch")
    images = torch.stack(pictures((SIDE, SIDE)))
    with torch.no_grad():
        torch.testing.assert_close(model(images), module(normalized(model.backbone.seam, images)).pooler_output,
                                   rtol=0, atol=2e-5)


def test_a_release_with_other_names_is_refused() -> None:
    module = make("ViTModel")
    module.encoder = module.layers
    del module.layers
    with pytest.raises(TypeError, match="expected ViTModel to have a part layers, got none"):
        spit.wrap(module)


def test_another_class_has_no_seam() -> None:
    config = transformers.CLIPConfig(vision_config=SIZED, text_config={**SMALL, "vocab_size": 9, "eos_token_id": 2,
                                                                       "bos_token_id": 1, "pad_token_id": 1})
    with pytest.raises(TypeError, match=r"no seam for transformers.models.clip.modeling_clip.CLIPModel"):
        spit.wrap(transformers.CLIPModel(config).eval())


def test_a_subclass_that_computes_something_else_is_refused() -> None:
    class Doubled(transformers.ViTModel):
        def forward(self, *args: Any, **options: Any) -> Any:
            out = super().forward(*args, **options)
            out.last_hidden_state = 2 * out.last_hidden_state
            return out

    with pytest.raises(WeightsError, match="tokens of Doubled on square patches"):
        spit.wrap(Doubled(transformers.ViTConfig(**SIZED)).eval())


def test_colours() -> None:
    assert wrapped("CLIPVisionModel")[1].embedder.mean == pytest.approx((0.481, 0.458, 0.408), abs=1e-3)
    assert wrapped("ViTModel")[1].embedder.std == (0.5, 0.5, 0.5)
    assert wrapped("DeiTModel")[1].embedder.mean == pytest.approx((0.485, 0.456, 0.406))
    assert spit.wrap(wrapped("ViTModel")[0], mean=(0.1, 0.2, 0.3)).embedder.mean == (0.1, 0.2, 0.3)


def test_half_precision() -> None:
    module = make("DINOv3ViTModel").to(torch.bfloat16)
    model = spit.wrap(module)
    with torch.no_grad():
        assert model(pictures(*SIZES)).dtype == torch.bfloat16


def test_blocks_and_norm_are_the_modules() -> None:
    backbone = wrapped("Dinov2Model")[1].backbone
    assert isinstance(backbone.blocks, nn.ModuleList)
    assert list(backbone.blocks) == list(backbone.module.encoder.layer)
    assert backbone.norm is backbone.module.layernorm
