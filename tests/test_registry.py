import pytest
import torch

from spit import registry, weights
from spit.errors import WeightsError
from spit.registry import create_model, list_models, model_config

SMALL = {"resolution": 2, "position_bins": 2, "gradient_bins": 2}


def test_names():
    families, sizes = ("vit", "rvit", "spit"), ("tiny", "small", "base", "large")
    assert list_models() == [f"{family}_{size}_16" for family in families for size in sizes]


@pytest.mark.parametrize(("name", "size"), [
    ("vit_tiny_16", (12, 192, 3)), ("rvit_small_16", (12, 384, 6)), ("spit_base_16", (12, 768, 12)),
    ("spit_large_16", (24, 1024, 16)),
])
def test_sizes(name, size):
    config = model_config(name)
    assert (config.depth, config.width, config.heads) == size
    assert (config.mlp_ratio, config.qkv_bias, config.layer_scale, config.token_budget) == (4, False, 1e-5, 256)


def test_tokenizers():
    assert [model_config(f"{family}_tiny_16").tokenizer for family in ("vit", "rvit", "spit")] == [
        "patch", "voronoi", "superpixel"]
    assert model_config("spit_tiny_16").tokenizer_options == {"levels": 4}


@pytest.mark.parametrize(("name", "gradients", "sigma"), [
    ("spit_base_16", True, 0.05), ("spit_base_16", False, 0.025), ("spit_small_16", True, 0.025),
])
def test_sigma(name, gradients, sigma):
    assert model_config(name, gradients).position_sigma == sigma


def test_create_model_with_overrides():
    model = create_model("vit_tiny_16", num_classes=7, gradients=False, drop_path=0.1, **SMALL)
    assert not model.training
    assert model.config.replace(num_classes=1000, drop_path=0.0) == model_config("vit_tiny_16", False).replace(**SMALL)
    assert model(torch.zeros(1, 3, 20, 30, dtype=torch.uint8)).shape == (1, 7)


def test_parameter_count_is_that_of_vit_tiny():
    model = create_model("vit_tiny_16", gradients=False, position_bins=14, layer_scale=None, qkv_bias=True)
    assert sum(parameter.numel() for parameter in model.parameters()) == 5_717_416 - 192  # DeiT-Tiny; one class token


def test_unknown_name_names_the_nearest():
    with pytest.raises(ValueError, match="unknown model 'spit_tny_16'; did you mean spit_tiny_16"):
        create_model("spit_tny_16")
    with pytest.raises(ValueError, match="list_models"):
        create_model("resnet")


def test_unknown_option_names_the_nearest():
    with pytest.raises(ValueError, match="'drop_pth'; the nearest known one is 'drop_path'"):
        create_model("vit_tiny_16", drop_pth=0.1)


def test_no_embedded_weights_says_where_to_get_some(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "CHECKPOINTS", tmp_path)
    with pytest.raises(WeightsError, match=r"vit_tiny_16.*hub id.*spit.from_timm"):
        create_model("vit_tiny_16", pretrained=True)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints") / "vit_tiny_16"
    weights.save(create_model("vit_tiny_16", num_classes=7, gradients=False, qkv_bias=True, **SMALL), folder)
    return folder


def test_embedded_weights(checkpoint, monkeypatch):
    monkeypatch.setattr(registry, "CHECKPOINTS", checkpoint.parent)
    model = create_model("vit_tiny_16", pretrained=True)
    assert model.config == weights.load(checkpoint).config
    assert not model.training
    for name, tensor in weights.load(checkpoint).state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


def test_other_number_of_classes_gets_a_fresh_head(checkpoint):
    model, saved = create_model("vit_tiny_16", pretrained=checkpoint, num_classes=3), weights.load(checkpoint)
    assert model.head.linear.weight.shape == (3, 192)
    assert model.head.linear.weight.any()
    assert torch.equal(model.embedder.projection.weight, saved.embedder.projection.weight)
    assert create_model("vit_tiny_16", pretrained=str(checkpoint), num_classes=0).config.num_classes == 0


@pytest.mark.parametrize(("name", "options", "message"), [
    ("vit_small_16", {}, "is no vit_small_16: expected width 384, got 192"),
    ("spit_tiny_16", {}, "expected tokenizer superpixel, got patch; .*with_tokenizer"),
    ("vit_tiny_16", {"gradients": True}, "embedder.projection.weight expected"),
    ("vit_tiny_16", {"layer_scale": None}, "scale1.factor is unexpected"),
])
def test_weights_of_another_model(checkpoint, name, options, message):
    with pytest.raises(WeightsError, match=message):
        create_model(name, pretrained=checkpoint, **options)
