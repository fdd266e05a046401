from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import spit as library
from interop.published.test_loader import IMAGE, model, release
from interop.test_timm import vit
from spit.registry import load_model

Run = Callable[..., Any]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    torch.save(release(model("vit_tiny_16")), tmp_path / "vit_tiny.pth")
    return tmp_path / "vit_tiny.pth"


def test_a_checkpoint_of_the_release(spit: Run, file: Path, tmp_path: Path) -> None:
    result = spit("convert", file, "-o", tmp_path / "ours")
    assert result.code == 0
    assert "tokenizer patch, features published, σ 0.025, width 192, depth 2, 5 classes, 0.9 M parameters" in result.out
    assert str(tmp_path / "ours") in result.out
    expected = library.from_published(file)
    assert torch.equal(load_model(tmp_path / "ours")(IMAGE), expected(IMAGE))


def test_json_and_options(spit: Run, file: Path, tmp_path: Path) -> None:
    result = spit("convert", file, "-o", tmp_path / "ours", "--tokenizer", "superpixel", "--heads", 2, "--sigma", 0.1,
                  "--train-size", 384, "--json")
    document = result.json
    assert document["config"] == load_model(document["model"]).config.to_dict()
    assert (document["config"]["tokenizer"], document["config"]["heads"]) == ("published", 2)
    assert (document["config"]["gradient_sigma"], document["config"]["eval_size"]) == (0.1, 384)
    assert document["digest"] == library.weights.digest(load_model(document["model"]))
    assert document["parameters"] == sum(tensor.numel() for tensor in release(model("vit_tiny_16")).values())


def test_a_vit_in_timms_names(spit: Run, tmp_path: Path) -> None:
    safetensors.torch.save_file(vit(), tmp_path / "deit.safetensors")
    assert spit("convert", tmp_path / "deit.safetensors", "-o", tmp_path / "ours").code == 0
    assert load_model(tmp_path / "ours").config == library.from_timm(vit()).config
    refused = spit("convert", tmp_path / "deit.safetensors", "-o", tmp_path / "other", "--tokenizer", "superpixel")
    assert "expected the tokenizer patch for a timm ViT state dict, got 'superpixel'" in refused.error


    refused = spit("convert", tmp_path / "deit.safetensors", "-o", tmp_path / "other", "--sigma", 0.1)
    assert "got a timm ViT state dict; leave them out" in refused.error


def test_what_is_refused_leaves_nothing(spit: Run, file: Path, tmp_path: Path,
                                        names: Callable[[Path], list[str]]) -> None:
    torch.save({"embedder.embedder.linear.weight": torch.zeros(2, 2)}, tmp_path / "other.pth")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("mine")
    before = names(tmp_path)
    assert "no file" in spit("convert", tmp_path / "none.pth", "-o", tmp_path / "ours").error
    assert "embedder.cls_token is missing" in spit("convert", tmp_path / "other.pth", "-o", tmp_path / "ours").error
    assert "tokenizer to be one of" in spit("convert", file, "-o", tmp_path / "ours", "--tokenizer", "slic").error
    assert "holds letter.txt" in spit("convert", file, "-o", tmp_path / "taken").error
    assert "got the file" in spit("convert", file, "-o", file).error
    assert names(tmp_path) == before
