import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from interop.test_timm import vit
from spit.errors import WeightsError
from spit.model import SpitModel
from spit.registry import load_model
from spit.training import TrainingError
from spit.training.augment import AugmentConfig
from spit.training.distill import student_of
from spit.training.distributed import Team
from spit.training.elastic import settings_of
from spit.training.journal import read_metrics
from spit.training.recipe import Recipe
from spit.training.retrofit import RetrofitRecipe
from spit.training.train import train
from spit.weights import save

CPU = torch.device("cpu")
ALONE = Team(0, 1, CPU)
RECIPES = [path for path in sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
           if "spit retrofit" in path.read_text()]
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A ViT of two classes with patches of 8 pixels, in timm's names."""
    path = tmp_path / "vit.safetensors"
    safetensors.torch.save_file(vit(width=64, patch=8, grid=4, classes=2), path)
    return path


@pytest.fixture
def run(photos: Path, parent: Path, tmp_path: Path) -> Run:
    """``run("name", "optimization.lr=1e-4")`` retrofits the parent into a folder of that name."""
    tiny = (f"parent.weights={parent}", "model.options.tokenizer_options.levels=2", f"data.train={photos}",
            "data.side=36", "data.size=32", "data.workers=0", "optimization.epochs=0.8", "optimization.batch=8",
            "run.log=1")

    def start(name: str, *changes: str) -> dict[str, Any]:
        return train(RetrofitRecipe.read(None, [*tiny, *changes]), tmp_path / name, ALONE)

    return start


def test_left_out_keys_take_the_retrofits_defaults(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text("[optimization]\nepochs = 6\n[data]\nsize = 64\n")
    recipe = RetrofitRecipe.read(tmp_path / "short.toml", ["optimization.batch=16", "augment.flip=0.0"])
    said = recipe.optimization
    assert (said.epochs, said.batch) == (6, 16)
    assert (said.lr, said.warmup, said.ema) == (2e-4, 0.5, 0.999)
    assert (recipe.data.size, recipe.data.side) == (64, 224)
    assert recipe.augment == AugmentConfig(scale=(0.25, 1.0), policies=("none",), cutmix_share=0.5, flip=0.0)
    assert Recipe.read(tmp_path / "short.toml").optimization.lr == Recipe().optimization.lr == 3e-3


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_those_that_come_with_spit(path: Path) -> None:
    recipe = RetrofitRecipe.read(path)
    if recipe.model.pretrained:
        assert settings_of(load_model(recipe.model.pretrained), recipe.elastic)
    else:
        fills = {"retrofit_masked": "mean", "retrofit_crop": "crop"}
        assert recipe.model.options["fill"] == fills.get(path.stem, "image")


def test_what_a_run_gives(run: Run, photos: Path, tmp_path: Path) -> None:
    result = run("a", f"data.validation={photos}")
    assert (result["steps"], result["photos"], result["name"]) == (2, 20, "retrofit of vit.safetensors")
    assert result["figures"]["images"] == 20
    lines = [line for line in read_metrics(tmp_path / "a") if line["kind"] == "train"]
    assert [line["step"] for line in lines] == [1, 2]
    assert {"loss", "logits", "class_token", "tokens", "agreement"} <= lines[0].keys()
    student = load_model(result["model"])
    assert student.config.tokenizer == "superpixel"
    assert student.config.tokenizer_options == {"compactness": 0.8, "self_loop": "none", "levels": 2}
    assert run("a", f"data.validation={photos}")["finished"]


def test_a_start(run: Run, parent: Path, tmp_path: Path) -> None:
    """A student goes on: with a rate of 0 it stays what it was."""
    first = load_model(run("a")["model"])
    still = ("optimization.lr=0.0", "optimization.min_lr=0.0", "optimization.warmup_lr=0.0")
    again = load_model(run("b", f"model.pretrained={tmp_path / 'a/model'}", *still)["model"])
    assert all(torch.equal(tensor, first.state_dict()[name]) for name, tensor in again.state_dict().items())
    fresh = load_model(parent).state_dict()["backbone.blocks.0.attention.qkv.weight"]
    assert not torch.equal(first.state_dict()["backbone.blocks.0.attention.qkv.weight"], fresh)


def test_a_start_with_other_options(run: Run, tmp_path: Path) -> None:
    """The student's own options stand, but for those of the recipe."""
    run("a", "optimization.epochs=0.4", "optimization.warmup=0", "model.options.fill=mean")
    told = ("model.options.token_budget=9", "model.options.drop_path=0.1", "model.options.tokenizer_options.levels=1",
            f"model.pretrained={tmp_path / 'a/model'}")
    config = load_model(run("b", *told)["model"]).config
    assert (config.token_budget, config.drop_path, config.fill) == (9, 0.1, "mean")
    assert config.tokenizer_options == {"compactness": 0.8, "self_loop": "none", "levels": 1}
    finer = (f"model.pretrained={tmp_path / 'a/model'}", "model.options.resolution=6", "distill.keep=0.1")
    assert load_model(run("finer", *finer)["model"]).config.resolution == 6
    with pytest.raises(ValueError, match="unknown option of tokenizer 'superpixel': 'nonsense'"):
        run("c", f"model.pretrained={tmp_path / 'a/model'}", "model.options.tokenizer_options.nonsense=3")
    with pytest.raises(WeightsError, match=r"expected gradients=True, .* got gradients=False"):
        run("d", f"model.pretrained={tmp_path / 'a/model'}", "model.options.gradients=false")


def test_a_parent_that_spit_saved(run: Run, parent: Path, tmp_path: Path) -> None:
    known = load_model(parent)
    known.config = known.config.replace(class_names=("coarse", "fine"))
    save(known, tmp_path / "saved")
    one, other = load_model(run("a")["model"]), load_model(run("b", f"parent.weights={tmp_path / 'saved'}")["model"])
    assert all(torch.equal(tensor, one.state_dict()[name]) for name, tensor in other.state_dict().items())
    assert (other.config.class_names, other.config.train_size, other.config.eval_size) == (("coarse", "fine"), 32, 32)


def test_what_does_not_fit(run: Run, photos: Path, parent: Path, tmp_path: Path) -> None:
    for changes, words in {"parent.weights=": r"parent\.weights", "data.train=[]": r"data\.train",
                           "data.size=36": r"patches of 8, got 36; set data\.size=32",
                           "distill.sizes=[40, 36]": r"distill\.sizes to be .* patches of 8, got 36; .*sizes=32",
                           "model.name=spit_base_16": r"model\.name"}.items():
        with pytest.raises(TrainingError, match=words):
            run("a", changes)
    safetensors.torch.save_file(vit(width=64, classes=3), tmp_path / "three.safetensors")
    other = load_model(tmp_path / "three.safetensors")
    with pytest.raises(TrainingError, match="got width 64 and 3 classes"):
        run("e", f"model.pretrained={save(student_of(other, {}), tmp_path / 'three')}")
    for name in ("coarse", "fine", "third"):
        (tmp_path / "more" / name).mkdir(parents=True)
        shutil.copy(photos / "fine/0.png", tmp_path / "more" / name)
    with pytest.raises(TrainingError, match="parent's 2 classes, a sub-folder each, got 3 classes"):
        run("f", f"data.validation={tmp_path / 'more'}")
    superpixels = SpitModel(load_model(parent).config.replace(
        tokenizer="superpixel", tokenizer_options={"levels": 2}, gradients=True, fill="image"))
    save(superpixels, tmp_path / "superpixels")
    for changes in ((), (f"model.pretrained={tmp_path / 'superpixels'}",)):
        with pytest.raises(WeightsError, match="expected a parent with square patches"):
            run(f"g{len(changes)}", f"parent.weights={tmp_path / 'superpixels'}", *changes)


def test_a_backbone_of_transformers(run: Run, tmp_path: Path, photos: Path) -> None:
    """From its folder by name, through both recipes, to models that load without the parent."""
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                                    image_size=32, patch_size=8, num_labels=2)
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path / "vit")
    source = f"parent.weights=hf:{tmp_path / 'vit'}"
    result = run("a", source, "model.options.tokenizer_options.levels=3", "optimization.epochs=4")
    assert result["name"] == "retrofit of vit"
    student = load_model(tmp_path / "a" / "model")
    assert (student.config.backbone, student.config.tokenizer) == ("wrapped", "superpixel")
    assert student.config.extractor_options["region"]
    assert student.embedder.branch.weight.any()
    lines = [line for line in read_metrics(tmp_path / "a") if line["kind"] == "train"]
    assert lines[-1]["loss"] < lines[0]["loss"]
    again = run("b", source, f"model.pretrained={tmp_path / 'a' / 'model'}", "model.options.tokenizer_options.levels=3")
    assert again["steps"] == 2

    recipe = Recipe.read(Path("transfer"), [
        f"model.pretrained={tmp_path / 'a' / 'model'}", f"data.train={photos}", "data.workers=0",
        "data.size=32", "data.side=32", "optimization.batch=8", "optimization.epochs=1", "optimization.compile=false"])
    train(recipe, tmp_path / "c", ALONE)
    assert load_model(tmp_path / "c" / "model")(torch.rand(1, 3, 32, 48)).shape == (1, 2)
    transformers.ViTModel(config, add_pooling_layer=False).save_pretrained(tmp_path / "bare")
    with pytest.raises(TrainingError, match=r"no data\.validation"):
        run("d", f"parent.weights=hf:{tmp_path / 'bare'}", f"data.validation={photos}")
