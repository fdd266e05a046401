import pytest
import safetensors.torch
import torch

from interop.test_timm import vit
from spit import registry, weights
from spit.errors import WeightsError
from spit.registry import architecture_of, create_model, list_models, load_model, model_config, weights_name

SMALL = {"resolution": 2, "position_bins": 2, "gradient_bins": 2}


def test_names():
    families, sizes = ("vit", "rvit", "spit"), ("tiny", "small", "base", "large")
    assert list_models() == [f"{family}_{size}_16" for family in families for size in sizes]


@pytest.mark.parametrize(("pattern", "pretrained", "names"), [
    ("spit_*", False, ["spit_tiny_16", "spit_small_16", "spit_base_16", "spit_large_16"]),
    ("*_tiny_16", False, ["vit_tiny_16", "rvit_tiny_16", "spit_tiny_16"]),
    ("*", True, ["rvit_tiny_16.deit_retrofit", "spit_tiny_16.deit_retrofit", "spit_tiny_16.elastic_retrofit",
                "spit_tiny_16.half_retrofit", "spit_tiny_16.masked_retrofit"]),
    ("spit_tiny_16", True, ["spit_tiny_16.deit_retrofit", "spit_tiny_16.elastic_retrofit", "spit_tiny_16.half_retrofit",
                            "spit_tiny_16.masked_retrofit"]),
    ("*.deit_*", True, ["rvit_tiny_16.deit_retrofit", "spit_tiny_16.deit_retrofit"]),
    ("vit_*", True, []),
    ("tiny", False, []), (["spit_tiny_*", "vit_tiny_*"], False, ["vit_tiny_16", "spit_tiny_16"]),
])
def test_filters(pattern, pretrained, names):
    assert list_models(pattern, pretrained) == names


@pytest.mark.parametrize("name", [name for tagged in list_models(pretrained=True)
                                  for name in (tagged, tagged.partition(".")[0])])
def test_a_name_is_one_model(name):
    trained = create_model(name, pretrained=True)
    assert create_model(name).config == trained.config == load_model(name).config == model_config(name)
    for key, tensor in load_model(name).state_dict().items():
        assert torch.equal(trained.state_dict()[key], tensor)


def test_a_name_without_a_tag_is_its_default_tag():
    assert model_config("spit_tiny_16") == model_config("spit_tiny_16.deit_retrofit")
    assert model_config("spit_tiny_16") != model_config("spit_tiny_16.paper")
    assert model_config("vit_tiny_16") == model_config("vit_tiny_16.paper")


@pytest.mark.parametrize(("name", "size"), [
    ("vit_tiny_16", (12, 192, 3)), ("rvit_small_16", (12, 384, 6)), ("spit_tiny_16.paper", (12, 192, 3)),
    ("spit_base_16", (12, 768, 12)), ("spit_large_16", (24, 1024, 16)),
])
def test_the_papers_config(name, size):
    config = model_config(name)
    assert (config.depth, config.width, config.heads) == size
    assert (config.mlp_ratio, config.qkv_bias, config.layer_scale, config.token_budget) == (4, False, 1e-5, 256)


def test_configs_and_weights_have_names():
    for name in list_models():
        assert architecture_of(model_config(name)) == architecture_of(model_config(f"{name}.paper")) == name
    assert architecture_of(model_config("spit_tiny_16").replace(depth=3)) is None
    assert architecture_of(model_config("vit_tiny_16").replace(tokenizer_options={"size": 8})) is None
    assert [weights_name(source) for source in ("spit_tiny_16", "spit_tiny_16.paper", "vit_tiny_16", "owner/name")] == [
        "spit_tiny_16.deit_retrofit", "spit_tiny_16.paper", "vit_tiny_16", "owner/name"]


@pytest.mark.parametrize(("name", "gradients", "sigma"), [
    ("spit_base_16", True, 0.05), ("spit_base_16", False, 0.025), ("spit_small_16", True, 0.025),
])
def test_sigma(name, gradients, sigma):
    assert model_config(name, gradients).position_sigma == sigma


def test_create_model_with_overrides():
    model = create_model("vit_tiny_16", num_classes=7, gradients=False, drop_path=0.1, **SMALL)
    assert model.config.replace(num_classes=1000, drop_path=0.0) == model_config("vit_tiny_16", False).replace(**SMALL)
    assert model(torch.zeros(1, 3, 20, 30, dtype=torch.uint8)).shape == (1, 7)


def test_parameter_count_is_that_of_vit_tiny():
    model = create_model("vit_tiny_16", gradients=False, position_bins=14, layer_scale=None, qkv_bias=True)
    assert sum(parameter.numel() for parameter in model.parameters()) == 5_717_416 - 192  # DeiT-Tiny; one class token


@pytest.mark.parametrize(("name", "message"), [
    ("vit_tiny_patch16_224", "timm's weights are not downloaded: give a file with its state dict"),
    ("spit_tny_16", "^unknown model 'spit_tny_16'; did you mean 'spit_tiny_16'"),
    ("resnet", "list_models"),
    ("spit_tiny_16.deit", "unknown tag 'deit' of spit_tiny_16; it has deit_retrofit, "
     "elastic_retrofit, half_retrofit, masked_retrofit, paper"),
    ("spit_tiny_16.", "unknown tag ''"), ("vit_tiny", "did you mean 'vit_tiny_16' or "),
    ("vit_small_16.deit", "unknown tag 'deit' of vit_small_16; it has paper"),
])
def test_unknown_names_name_the_nearest(name, message):
    with pytest.raises(ValueError, match=message):
        create_model(name)
    for make in (lambda name: create_model(name, pretrained=True), load_model):
        with pytest.raises((ValueError, WeightsError)) as caught:
            make(name)
        assert name.partition(".")[0] in str(caught.value)
        assert " vit_tiny_16" not in str(caught.value), "a name without weights is no help where they are needed"


@pytest.mark.parametrize("make", [lambda name: create_model(name, pretrained=True), load_model])
@pytest.mark.parametrize("name", ["vit_tiny_16", "spit_tiny_16.paper"])
def test_no_embedded_weights_says_where_to_get_some(make, name):
    with pytest.raises(WeightsError, match=f"no trained weights of {name} come with spit; give .*hub id.*timm ViT"):
        make(name)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints") / "vit_tiny_16.mine"
    weights.save(create_model("vit_tiny_16", num_classes=7, gradients=False, qkv_bias=True, **SMALL), folder)
    return folder


def test_a_new_tag_is_found_by_its_folder(checkpoint, monkeypatch):
    monkeypatch.setattr(registry, "CHECKPOINTS", checkpoint.parent)
    assert list_models(pretrained=True) == ["vit_tiny_16.mine"]
    model = create_model("vit_tiny_16.mine", pretrained=True)
    assert model.config == load_model(checkpoint).config == create_model("vit_tiny_16.mine").config
    for name, tensor in load_model(checkpoint).state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor)


def test_load_model_takes_a_name_a_folder_and_a_file(checkpoint, tmp_path, monkeypatch):
    safetensors.torch.save_file(vit(), tmp_path / "vit.safetensors")
    torch.save(vit(), tmp_path / "vit.pth")
    assert load_model("spit_tiny_16").config == model_config("spit_tiny_16")
    assert load_model(checkpoint).config == load_model(str(checkpoint)).config
    for name in ("vit.safetensors", "vit.pth"):
        assert load_model(tmp_path / name, dtype=torch.bfloat16, num_classes=5).head.linear.weight.shape == (5, 64)
        assert load_model(str(tmp_path / name)).config.num_classes == 3
    weights.save(load_model(checkpoint), tmp_path / "spit_tiny_16")
    monkeypatch.chdir(tmp_path)
    assert load_model("spit_tiny_16").config == load_model(checkpoint).config  # a path that exists is no name


def test_pretrained_takes_what_load_model_takes(tmp_path):
    tensors = vit(width=192, patch=16)
    tensors |= {name.replace("blocks.0", f"blocks.{index}"): tensor for name, tensor in tensors.items()
                if name.startswith("blocks.0.") for index in range(12)}
    safetensors.torch.save_file({name: tensor.clone() for name, tensor in tensors.items()}, tmp_path / "v.safetensors")
    model = create_model("vit_tiny_16", pretrained=tmp_path / "v.safetensors", drop_path=0.1)
    assert (model.config.normalization, model.config.drop_path) == ("imagenet", 0.1)
    named = create_model("spit_tiny_16", pretrained="spit_tiny_16", num_classes=4)
    assert named.config == model_config("spit_tiny_16").replace(num_classes=4)


@pytest.mark.parametrize("training", [False, True])
def test_mode(checkpoint, training):
    for model in (create_model("vit_tiny_16", training=training, **SMALL), load_model(checkpoint, training=training),
                  create_model("vit_tiny_16", checkpoint, training=training)):
        assert {module.training for module in model.modules()} == {training}
    assert not create_model("vit_tiny_16", **SMALL).training
    assert not load_model(checkpoint).training


@pytest.mark.parametrize(("name", "options", "message"), [
    ("vit_small_16", {}, "is no vit_small_16: expected width 384, got 192"),
    ("spit_tiny_16", {}, "expected tokenizer superpixel, got patch; .*with_tokenizer"),
    ("vit_tiny_16", {"gradients": True}, "expected gradients=False, as its weights have, got gradients="),
    ("vit_tiny_16", {"layer_scale": None}, "expected layer_scale=1e-05, .*, got layer_scale=None; leave it out, or "
     "start without pretrained weights"),
    ("vit_tiny_16", {"depth": 3, "mlp_ratio": 2.0}, r"expected depth=\d+, mlp_ratio=4.0, .* got depth=3, mlp_ratio=2.0"
     "; leave them out"),
    ("vit_tiny_16", {"heads": 6}, "expected heads=3, .*, got heads=6"),
    ("vit_tiny_16", {"backbone": "merging", "depth": 3, "num_classes": 3}, r"expected depth=\d+, .* got depth=3; "),
])
def test_weights_of_another_model(checkpoint, name, options, message):
    with pytest.raises(WeightsError, match=message):
        create_model(name, pretrained=checkpoint, **options)


def test_a_config_is_no_name() -> None:
    with pytest.raises(TypeError, match=r"spit.SpitModel\(config\)"):
        create_model(model_config("spit_tiny_16"))  # type: ignore[arg-type]
