from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

import spit
from spit.config import ModelConfig
from spit.errors import WeightsError
from spit.interop.published.loader import published_names, published_options
from spit.interop.published.options import TOKENIZERS
from spit.interop.read import read_file
from spit.model import SpitModel
from spit.registry import SIZES, create_model, load_model
from spit.registry import TOKENIZERS as FAMILIES

IMAGE = torch.arange(3 * 32 * 32).view(3, 32, 32).remainder(251).byte()


def model(name: str = "spit_tiny_16", gradients: bool = True, **options: Any) -> SpitModel:
    """An untrained model of the release."""
    torch.manual_seed(0)
    family, size, _ = name.split("_")
    release = published_options(FAMILIES[family][0], gradients, SIZES[size][0])
    small = {"resolution": 4, "position_bins": 4, "gradient_bins": 4, "depth": 2, "num_classes": 5}
    return create_model(f"{name}.paper", **release | small | options)


def release(ours: SpitModel) -> dict[str, Tensor]:
    """The state dict of a model under the names of the release."""
    state = ours.state_dict()
    return {theirs: state[name] for theirs, name in published_names(ours.config.depth).items()}


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize(("name", "tokenizer"), [
    ("spit_tiny_16", None), ("rvit_small_16", "voronoi"), ("vit_base_16", "patch"), ("spit_base_16", "superpixel"),
])
def test_a_checkpoint_becomes_the_model_of_its_name(name: str, tokenizer: str | None, gradients: bool) -> None:
    ours = model(name, gradients=gradients)
    loaded = spit.from_published(release(ours), tokenizer)
    assert loaded.config == ours.config
    assert loaded.config.position_sigma == (0.05 if gradients and "base" in name else 0.025)
    assert loaded.config.tokenizer_options.get("compactness", 0) == (0.1 if not gradients and "spit" in name else 0)
    assert torch.equal(loaded(IMAGE), ours(IMAGE))
    assert not loaded.training


@pytest.mark.parametrize(("file", "tokenizer"), [
    ("SPiT-S16.pth", "superpixel"), ("rvit_b16_grad.pth", "voronoi"), ("ViT-B16.safetensors", "patch"),
    ("weights.pth", "superpixel"), ("invitro.pth", "superpixel"), ("my_vit_small.pth", "patch"),
])
def test_files(tmp_path: Path, file: str, tokenizer: str) -> None:
    tensors = release(model())
    if file.endswith("pth"):
        torch.save({"state_dict": tensors}, tmp_path / file)
    else:
        safetensors.torch.save_file(tensors, tmp_path / file)
    expected = spit.from_published(tensors, tokenizer).config
    for load in (spit.from_published, load_model):
        assert load(tmp_path / file).config == expected
    assert read_file(tmp_path / file).config == expected
    assert spit.load(tmp_path / file, device="cpu").model.config == expected


def test_it_is_saved_and_loaded_as_ours(tmp_path: Path) -> None:
    loaded = spit.from_published(release(model(gradients=False)))
    assert torch.equal(load_model(spit.save_model(loaded, tmp_path))(IMAGE), loaded(IMAGE))


def test_the_options_of_the_release() -> None:
    config = model("spit_base_16").config
    assert (config.qkv_bias, config.layer_scale, config.position_sigma, config.train_size) == (False, 1e-5, 0.05, 256)
    assert (config.tokenizer, config.extractor) == ("published", "published")
    assert config.tokenizer_options == {"levels": 4, "compactness": 0.0}
    assert ModelConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ValueError, match="give tokenizer='published' and extractor='published' in place of preset"):
        create_model("spit_tiny_16", preset="published")


@pytest.mark.parametrize("name", ["spit_tiny_16", "rvit_tiny_16", "vit_tiny_16"])
def test_configs_of_versions_with_a_preset(name: str) -> None:
    """As version 0.1 wrote them, with the same tensors."""
    ours = model(name, gradients=False)
    before = ours.config.to_dict() | {"preset": "published", "gradient_contrast": 27.8}
    del before["extractor"]
    if name != "vit_tiny_16":
        fixed = {"features": "published", "self_loop": "published", "similarity": "cosine", "max_tokens": None}
        before["tokenizer"] = next(old for old, new in TOKENIZERS.items() if new == ours.config.tokenizer)
        before["tokenizer_options"] = {**before["tokenizer_options"], "preset": "published",
                                       **(fixed if name == "spit_tiny_16" else {})}
    loaded = SpitModel(ModelConfig.from_dict(before))
    loaded.load_state_dict(ours.state_dict())
    assert (loaded.tokenizer, loaded.extractor) == (ours.tokenizer, ours.extractor)
    assert torch.equal(loaded.eval()(IMAGE), ours.eval()(IMAGE))


def test_a_config_with_the_preset_of_spit_is_one_without() -> None:
    config = ModelConfig.from_dict({"preset": "spit", "tokenizer_options": {"levels": 3, "preset": "spit"}})
    assert config == ModelConfig(tokenizer_options={"levels": 3})


def test_options() -> None:
    tensors = release(model(width=96, heads=3, position_sigma=0.1, gradient_sigma=0.1))
    with pytest.raises(WeightsError, match=r"the width 96 does not tell the number of heads; give .*heads="):
        spit.from_published(tensors)
    loaded = spit.from_published(tensors, heads=3, sigma=0.1, size=384, num_classes=0)
    assert (loaded.config.train_size, loaded.config.eval_size) == (384, 384)
    assert (loaded.config.heads, loaded.config.position_sigma, loaded.config.num_classes) == (3, 0.1, 0)
    with pytest.raises(ValueError, match="tokenizer to be one of patch, voronoi, superpixel, got 'spit'"):
        spit.from_published(tensors, "spit", heads=3)


@pytest.mark.parametrize(("change", "message"), [
    ({"norm.bias": None}, "^state dict: expected the names of the authors' release, but norm.bias is missing$"),
    ({"extra": torch.zeros(1)}, "but extra is unexpected$"),
    ({"blocks.3.norm1.bias": torch.zeros(192)}, r"blocks.2.norm1.weight is missing; .*\(and 22 more\)$"),
    ({"embedder.embedder.linear.weight": torch.zeros(192, 81)}, r"4 or 5 channels of square patches, got .*192, 81"),
    ({"embedder.embedder.linear.weight": torch.zeros(192)}, r"4 or 5 channels of square patches, got .*192"),
    ({"norm.bias": torch.zeros(191)}, r"backbone.norm.bias expected \(192,\), got \(191,\)"),
])
def test_wrong_tensors_are_named(change: dict[str, Tensor | None], message: str) -> None:
    tensors = {name: tensor for name, tensor in (release(model()) | change).items() if tensor is not None}
    with pytest.raises(WeightsError, match=message):
        spit.from_published(tensors)


def test_a_checkpoint_of_many_processes() -> None:
    tensors = release(model())
    wrapped = {f"module.{name}": tensor for name, tensor in tensors.items()}
    assert torch.equal(spit.from_published(wrapped)(IMAGE), spit.from_published(tensors)(IMAGE))


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="expected a state dict"):
        spit.from_published([])  # type: ignore[arg-type]
    (tmp_path / "spit.pth").write_text("hello")
    with pytest.raises(WeightsError, match=r"spit.pth holds no weights; expected .* the authors' release"):
        spit.from_published(tmp_path / "spit.pth")
    with pytest.raises(WeightsError, match=r"expected the names of the authors' release, but embedder.cls_token"):
        spit.from_published({})
    with pytest.raises(WeightsError, match=r"got a timm ViT state dict; spit.from_timm loads it"):
        spit.from_published({"patch_embed.proj.weight": torch.zeros(1)})
