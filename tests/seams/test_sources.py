"""Backbones of transformers by name: folders of their own in place of the hub."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import spit
from spit.errors import WeightsError

transformers = pytest.importorskip("transformers")

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
         "image_size": 32, "patch_size": 8}


@pytest.fixture
def folder(tmp_path: Path, randomised: Callable[[nn.Module], nn.Module]) -> Path:
    """A ViT with three classes, saved as transformers saves it, with an image processor's colours."""
    names = {0: "cat", 1: "dog", 2: "newt"}
    vit = randomised(transformers.ViTForImageClassification(transformers.ViTConfig(**SMALL, id2label=names)))
    vit.save_pretrained(tmp_path / "vit")
    (tmp_path / "vit" / "preprocessor_config.json").write_text(json.dumps(
        {"image_processor_type": "ViTImageProcessor", "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.2, 0.3]}))
    return tmp_path / "vit"


@torch.no_grad()
def test_a_model_by_name(folder: Path, photos: Callable[..., list[Tensor]]) -> None:
    model = spit.load(f"hf:{folder}", device="cpu").model.with_tokenizer("patch")
    vit = transformers.ViTForImageClassification.from_pretrained(folder).eval()
    [image] = photos((32, 32))
    mean, std = (torch.tensor(values)[:, None, None] for values in ((0.4, 0.5, 0.6), (0.2, 0.2, 0.3)))
    assert torch.allclose(model(image), vit((image[None] - mean) / std).logits, atol=1e-5)
    assert model.config.class_names == ("cat", "dog", "newt")
    assert spit.load_model(f"hf:{folder}", num_classes=7)(image).shape == (1, 7)


@torch.no_grad()
def test_the_image_tower_of_a_model_of_images_and_text(tmp_path: Path, photos: Callable[..., list[Tensor]]) -> None:
    text = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
            "vocab_size": 64, "eos_token_id": 2, "bos_token_id": 1}
    both = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=SMALL)).eval()
    both.save_pretrained(tmp_path / "clip")
    model = spit.load_model(f"hf:{tmp_path / 'clip'}")
    [image] = photos((32, 32))
    assert model(image).shape == (1, 32)
    assert type(model.backbone.module).__name__ == "CLIPVisionModel"


def test_a_saved_model_of_transformers(folder: Path, tmp_path: Path, photos: Callable[..., list[Tensor]]) -> None:
    model = spit.load_model(f"hf:{folder}")
    again = spit.load_model(spit.save_model(model, tmp_path / "saved"))
    assert again.config == model.config
    images = photos((32, 48), (40, 24))
    assert torch.equal(model(images), again(images))
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    config["model"]["backbone_options"]["source"] = "hf:os.system"
    (tmp_path / "saved" / "config.json").write_text(json.dumps(config))
    with pytest.raises(WeightsError, match=r"got 'os\.system'"):
        spit.load_model(tmp_path / "saved")
    config["model"]["backbone_options"]["source"] = "pip:vit"
    (tmp_path / "saved" / "config.json").write_text(json.dumps(config))
    with pytest.raises(WeightsError, match="timm:NAME or hf:CLASS"):
        spit.load_model(tmp_path / "saved")


def test_names_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(WeightsError, match=r"no weights of '\./nowhere'"):
        spit.load("hf:./nowhere")
    transformers.BertConfig().save_pretrained(tmp_path / "bert")
    with pytest.raises(WeightsError, match="no seam for a model of type bert"):
        spit.load(f"hf:{tmp_path / 'bert'}")
