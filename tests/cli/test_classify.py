from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

import spit as library
from spit.cli.classify import show_top
from spit.config import ModelConfig
from spit.data.crops import central_square
from spit.model import SpitModel

Run = Callable[..., Any]
SHARED = Path(__file__).parents[3] / "shared"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = ModelConfig(tokenizer="patch", tokenizer_options={"size": 8}, resolution=4, position_bins=4,
                         gradients=False, width=32, depth=2, heads=2, num_classes=7)
    model = SpitModel(config)
    torch.nn.init.normal_(model.head.linear.weight)
    return library.save_model(model, tmp_path / "model")


def vit_tensors(classes: int = 5) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    shapes = {"cls_token": (1, 1, 64), "pos_embed": (1, 17, 64), "patch_embed.proj.weight": (64, 3, 16, 16),
              "patch_embed.proj.bias": (64,), "norm.weight": (64,), "norm.bias": (64,),
              "head.weight": (classes, 64), "head.bias": (classes,)}
    block = {"norm1.weight": (64,), "norm1.bias": (64,), "attn.qkv.weight": (192, 64), "attn.qkv.bias": (192,),
             "attn.proj.weight": (64, 64), "attn.proj.bias": (64,), "norm2.weight": (64,), "norm2.bias": (64,),
             "mlp.fc1.weight": (256, 64), "mlp.fc1.bias": (256,), "mlp.fc2.weight": (64, 256), "mlp.fc2.bias": (64,)}
    shapes |= {f"blocks.0.{name}": shape for name, shape in block.items()}
    return {name: torch.randn(shape, generator=random) * 0.2 for name, shape in shapes.items()}


def probabilities(model: SpitModel, path: Path, size: int) -> torch.Tensor:
    with torch.no_grad():
        return model(central_square(library.load_image(path), size)[None])[0].softmax(0)


def test_a_saved_model(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path) -> None:
    paths = [photo(tmp_path / f"{seed}.png", seed=seed) for seed in range(2)]
    result = spit("classify", *paths, "--model", folder, "--size", 32, "--top", 3, "--json")
    assert result.code == 0, result.err
    assert result.json["model"]["name"] == folder.parent.name  # as of runs/mine/model
    model = library.load_model(folder)
    for path, document in zip(paths, result.json["images"], strict=True):
        expected = probabilities(model, path, 32)
        assert document["tokens"] == 16
        assert [item["index"] for item in document["top"]] == expected.topk(3).indices.tolist()
        np.testing.assert_allclose([item["probability"] for item in document["top"]],
                                   expected.topk(3).values.numpy(), rtol=1e-4)
        assert document["top"][0]["name"] == f"class {document['top'][0]['index']}"


def test_another_tokenizer_on_the_same_weights(spit: Run, photo: Callable[..., Path], folder: Path,
                                               tmp_path: Path) -> None:
    path = photo(tmp_path / "a.png")
    base = ("classify", path, "--model", folder, "--size", 32, "--json")
    assert spit(*base, "--patch-size", 16).json["images"][0]["tokens"] == 4
    changed = spit(*base, "--tokenizer", "voronoi", "--cells", 9).json
    assert changed["images"][0]["tokens"] == 9
    assert changed["model"]["config"]["tokenizer"] == "voronoi"


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_a_vit_in_timms_names(suffix: str, spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    path, file = photo(tmp_path / "a.png"), tmp_path / f"vit{suffix}"
    tensors = vit_tensors()
    if suffix == ".pth":
        torch.save(tensors, file)
    else:
        safetensors.torch.save_file(tensors, file)
    [document] = spit("classify", path, "--model", file, "--size", 64, "--json").json["images"]
    expected = probabilities(library.from_timm(tensors), path, 64)
    assert [item["index"] for item in document["top"]] == expected.argsort(descending=True).tolist()


def test_a_thousand_classes_are_named(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    safetensors.torch.save_file(vit_tensors(1000), tmp_path / "vit.safetensors")
    result = spit("classify", photo(tmp_path / "a.png"), "--model", tmp_path / "vit.safetensors", "--json")
    [document] = result.json["images"]
    assert len(document["top"]) == 5
    names = library.data.classes.imagenet_classes()
    assert all(item["name"] == names[item["index"]] for item in document["top"])


def test_another_size_than_the_models_own(spit: Run, photo: Callable[..., Path], save_tiny: Callable[..., Path],
                                          tmp_path: Path) -> None:
    own = save_tiny(tokenizer="patch", tokenizer_options={"size": 8}, num_classes=2, eval_size=32)
    base = ("classify", photo(tmp_path / "a.png"), "--model", own, "--json")
    for arguments, size in (((), 32), (("--size", 48), 48)):
        document = spit(*base, *arguments).json
        assert (document["model"]["size"], document["images"][0]["tokens"]) == (size, (size // 8) ** 2)


def test_a_size_below_one_token(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path) -> None:
    base = ("classify", photo(tmp_path / "a.png"), "--model", folder)
    assert spit(*base, "--size", 3).error == "spit: expected --size of at least 16, got 3\n"
    assert f"({folder.parent.name}, central square, 1 token)" in spit(*base, "--size", 16, "--patch-size", 16).out


def test_the_answer_in_words(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path) -> None:
    result = spit("classify", photo(tmp_path / "a.png"), "--model", folder, "--size", 32)
    assert result.code == 0
    assert result.out.startswith(f"{tmp_path / 'a.png'} ({folder.parent.name}, central square, 16 tokens)\n")
    assert "class " in result.out
    assert "%" in result.out


def test_a_model_that_sees_whole_images(spit: Run, photo: Callable[..., Path], save_tiny: Callable[..., Path],
                                        tmp_path: Path) -> None:
    model = save_tiny(num_classes=2, eval_crop=None, eval_size=32)
    found = spit("classify", photo(tmp_path / "a.png"), "--model", model).out
    assert f"({model.name}, whole image as a square, " in found


def test_small_probabilities_are_not_zero(capsys: pytest.CaptureFixture[str]) -> None:
    show_top([{"name": name, "probability": chance}
              for name, chance in (("cat", 0.9994), ("dog", 0.00051), ("fox", 0.0004))])
    assert capsys.readouterr().out.split() == ["99.9%", "cat", "0.1%", "dog", "<0.1%", "fox"]


def test_a_damaged_image_among_good_ones(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path) -> None:
    photo(tmp_path / "in/a.png")
    (tmp_path / "in/bad.png").write_text("no image")
    result = spit("classify", tmp_path / "in", "--model", folder, "--size", 32, "--json")
    assert result.code == 2
    assert len(result.json["images"]) == len(result.json["failed"]) == 1
    assert result.err.endswith("1 of 2 images failed\n")


def test_bad_weights_are_one_line(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path) -> None:
    path = photo(tmp_path / "a.png")
    [file] = folder.glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    (tmp_path / "text.safetensors").write_text("no tensors")
    refused = {
        str(folder): "damaged",
        str(tmp_path / "text.safetensors"): "text.safetensors",
        "weights/none.safetensors": "no file",
        str(tmp_path / "nowhere" / "at" / "all"): "no folder",
    }
    for weights, told in refused.items():
        assert told in spit("classify", path, "--model", weights).error


def test_models_by_name(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path,
                        monkeypatch: pytest.MonkeyPatch) -> None:
    path = photo(tmp_path / "a.png")
    for arguments, told in (
        (["--model", "vit_tiny"], "did you mean 'rvit_tiny_16' or 'spit_tiny_16'?"),  # vit_tiny_16 has no weights
        (["--model", "spit_small_16"], "no trained weights of spit_small_16 come with spit; give a folder"),
        (["--model", "spit_tiny_16.best"], "unknown tag 'best' of spit_tiny_16; it has deit_retrofit"),
        (["--model", folder, "--model", "vit.pth"], "expected one --model"),
    ):
        assert told in spit("classify", path, *arguments).error, arguments
    monkeypatch.setattr("spit.registry.CHECKPOINTS", tmp_path / "none")
    assert "no trained weights of spit_tiny_16" in spit("classify", path).error


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared")
def test_deit_sees_a_cat(spit: Run) -> None:
    skimage = pytest.importorskip("skimage")
    cat = Path(skimage.__file__).parent / "data" / "chelsea.png"
    result = spit("classify", cat, "--model", SHARED / "weights" / "deit_tiny_patch16_224.safetensors", "--json")
    assert [item["name"] for item in result.json["images"][0]["top"][:3]] == ["Egyptian cat", "tabby", "tiger cat"]
