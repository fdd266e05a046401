import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from interop.test_timm import vit
from spit.cli.options import Running
from spit.cli.retrofit import RetrofitOptions, retrofit
from spit.cli.train import RunOptions
from spit.registry import load_model
from spit.training.retrofit import RetrofitRecipe

pytestmark = pytest.mark.usefixtures("one_thread")
Run = Callable[..., Any]
SMALL = ("data.size=32", "data.side=36", "data.workers=0", "optimization.batch=4", "optimization.epochs=1")


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    path = tmp_path / "vit.safetensors"
    safetensors.torch.save_file(vit(width=64, patch=16, grid=2, classes=3), path)
    return path


@pytest.fixture
def photos(photo: Callable[..., Path], tmp_path: Path) -> Path:
    for index in range(12):
        photo(tmp_path / "photos" / "abc"[index % 3] / f"{index}.png", width=40 + index, seed=index)
    return tmp_path / "photos"


@pytest.fixture
def command(parent: Path, photos: Path, tmp_path: Path) -> list[object]:
    changes = [word for change in SMALL for word in ("--set", change)]
    return ["retrofit", "--parent", parent, "--images", photos, *changes, "-o", tmp_path / "run", "--device", "cpu"]


def test_from_a_vit_to_superpixels_and_again(spit: Run, command: list[object], photos: Path, tmp_path: Path) -> None:
    result = spit(*command, "--validation", photos, "--json")
    assert result.code == 0, result.err
    assert (result.json["steps"], result.json["photos"]) == (3, 12)
    assert result.json["figures"]["images"] == 12
    assert "superpixel tokens for" in result.err
    assert "step 3/3 validation top-1" in result.err
    student = load_model(tmp_path / "run/model")
    assert (student.config.tokenizer, student.config.num_classes, student.config.gradients) == ("superpixel", 3, True)
    report = (tmp_path / "run/report.md").read_text()
    assert "# retrofit of vit.safetensors" in report
    assert f"- **model**: architecture superpixel tokens, width {student.config.width}, " in report
    assert f"started from {tmp_path / 'vit.safetensors'}" in report

    again = spit(*command, "--validation", photos)
    assert again.code == 0
    assert "was already finished: 3 steps" in again.out
    assert 'holds a run of another recipe: model.options.tokenizer was not set, is "voronoi"' in spit(
        *command, "--tokenizer", "voronoi").error


def test_another_tokenizer(spit: Run, command: list[object], parent: Path,
                                                tmp_path: Path) -> None:
    result = spit(*command, "--tokenizer", "voronoi", "--set", "model.options.tokenizer_options.cells=5", "--set",
                  "model.options.gradients=false", "--set", "run.log=1")
    assert result.code == 0, result.err
    assert "finished after" in result.out
    assert "No validation: the recipe names no photos for it; --set data.validation=FOLDER does" in result.out
    student = load_model(tmp_path / "run/model")
    assert (student.config.tokenizer, student.config.tokenizer_options["cells"]) == ("voronoi", 5)
    assert not student.config.gradients


def test_a_recipe_and_changes(spit: Run, command: list[object], tmp_path: Path) -> None:
    """Options are over the recipe, --set over both; the rest is the retrofit's default."""
    (tmp_path / "own.toml").write_text('[model.options]\ntokenizer = "superpixel"\n'
                                       '[optimization]\nepochs = 7\nclip = 0.5\n'
                                       f'[run]\noutput = "{tmp_path / "named"}"\n')
    place = command.index("-o")
    command[place : place + 2] = ["--recipe", tmp_path / "own.toml", "--tokenizer", "voronoi"]
    assert spit(*command, "--set", "distill.keep=0.5").code == 0
    written = json.loads((tmp_path / "named/recipe.json").read_text())
    assert written["model"]["options"]["tokenizer"] == "voronoi"
    assert written["distill"]["keep"] == 0.5
    assert (written["optimization"]["epochs"], written["optimization"]["clip"]) == (1, 0.5)
    assert (written["optimization"]["lr"], written["optimization"]["ema"]) == (2e-4, 0.999)
    assert written["augment"]["cutmix_share"] == 0.5


def test_bad_input_is_one_line(spit: Run, command: list[object], photos: Path, parent: Path, tmp_path: Path) -> None:
    runs = count()

    def error(*arguments: object) -> str:
        line: str = spit(*arguments, "-o", tmp_path / f"run{next(runs)}", "--device", "cpu").error
        return line

    assert "expected a parent, got none" in error("retrofit", "--images", photos)
    assert "expected photos to train on, got none" in error("retrofit", "--parent", parent)
    assert "nowhere: expected a folder" in error("retrofit", "--parent", parent, "--images", "nowhere")
    assert "no file nowhere.pth" in error("retrofit", "--parent", "nowhere.pth", "--images", photos)
    safetensors.torch.save_file({"conv1.weight": torch.zeros(3)}, tmp_path / "resnet.safetensors")
    assert "expected the timm state dict of a plain ViT with a class token, but it has conv1.weight" in error(
        "retrofit", "--parent", tmp_path / "resnet.safetensors", "--images", photos)
    assert "'superpixels'" in error(*command, "--tokenizer", "superpixels")
    assert "multiple of the parent's patches of 16, got 40" in error(*command, "--set", "data.size=40")
    assert "[parent] unknown option 'weight'; did you mean 'weights'" in error(
        *command, "--set", "parent.weight=3")
    assert "no such recipe" in error(*command, "--recipe", tmp_path / "nowhere.toml")
    assert "did you mean 'retrofit_tiny' or 'retrofit_crop' or 'retrofit_masked'?" in error(
        *command, "--recipe", "retrofit")
    assert "expected a parent, got none" in error("retrofit", "--recipe", "retrofit_tiny", "--images", photos)


def test_models_by_name(spit: Run, command: list[object], tmp_path: Path) -> None:
    """--parent and model.pretrained take what --model takes."""
    by_name = [*command, "--parent", "rvit_tiny_16"]
    assert "expected a parent with square patches, got one with voronoi tokens" in spit(*by_name).error
    assert "got width 192 and 1000 classes in model.pretrained" in spit(
        *command, "--set", "parent.start=spit_tiny_16").error
    assert "no trained weights of vit_tiny_16 come with spit" in spit(*command, "--parent", "vit_tiny_16").error


@pytest.mark.parametrize("path", ["a/b.pth", "it's", 'a"b\'c', "C:\\new\\'x'", "true", "3", "#x", "[a]"])
def test_any_path_is_a_path(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RetrofitRecipe] = []
    monkeypatch.setattr("spit.cli.retrofit.carry_out", lambda recipe, run, running: seen.append(recipe) or 0)
    retrofit(RetrofitOptions(parent=path, images=(path, "b")), RunOptions(), Running())
    assert seen[0].parent.weights == path
    assert seen[0].data.train == (path, "b")
