import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from spit.errors import WeightsError
from spit.model import SpitModel
from spit.training.augment import AugmentConfig
from spit.training.distill import student_of
from spit.training.distributed import Team
from spit.training.errors import TrainingError
from spit.training.journal import read_metrics
from spit.training.recipe import Recipe, read_recipe
from spit.training.retrofit import RetrofitRecipe, load_parent
from spit.training.train import train
from spit.weights import load, save
from test_interop import vit

ALONE = Team(0, 1, torch.device("cpu"))
RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("retrofit*.toml"))
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
    tiny = (f"parent.weights={parent}", "parent.options.levels=2", f"data.train={photos}", "data.side=36",
            "data.size=32", "data.workers=0", "optimization.epochs=0.8", "optimization.batch=8", "run.log=1")

    def start(name: str, *changes: str) -> dict[str, Any]:
        recipe = read_recipe(None, [*tiny, *changes], RetrofitRecipe)
        return train(recipe, tmp_path / name, ALONE)

    return start


def test_left_out_keys_take_the_retrofits_defaults(tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text("[optimization]\nepochs = 3\n[data]\nsize = 64\n")
    recipe = read_recipe(tmp_path / "short.toml", ["optimization.batch=16", "augment.flip=0.0"], RetrofitRecipe)
    assert isinstance(recipe, RetrofitRecipe)
    said = recipe.optimization
    assert (said.epochs, said.batch) == (3, 16)
    assert (said.lr, said.warmup, said.ema, said.drop_path) == (2e-4, 0.5, 0.999, 0.0)
    assert (recipe.data.size, recipe.data.side) == (64, 224)
    assert recipe.augment == AugmentConfig(scale=(0.25, 1.0), policies=("none",), cutmix_share=0.5, flip=0.0)
    assert read_recipe(tmp_path / "short.toml").optimization.lr == Recipe().optimization.lr == 3e-3


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_those_that_come_with_spit(path: Path) -> None:
    recipe = read_recipe(path, kind=RetrofitRecipe)
    assert isinstance(recipe, RetrofitRecipe)
    assert recipe.parent.tokenizer == "superpixel"
    assert "Expected" in path.read_text().partition("[data]")[0]


def test_what_a_run_gives(run: Run, photos: Path, tmp_path: Path) -> None:
    result = run("a", f"data.validation={photos}")
    assert (result["steps"], result["photos"], result["name"]) == (2, 20, "retrofit of vit.safetensors")
    assert result["figures"]["images"] == 20
    lines = [line for line in read_metrics(tmp_path / "a") if line["kind"] == "train"]
    assert [line["step"] for line in lines] == [1, 2]
    assert {"loss", "logits", "class_token", "tokens", "agreement"} <= lines[0].keys()
    student = load(result["model"])
    assert student.config.tokenizer == "superpixel"
    assert student.config.tokenizer_options == {"compactness": 0.8, "self_loop": "none", "levels": 2}
    assert run("a", f"data.validation={photos}")["finished"]


def test_a_start(run: Run, parent: Path, tmp_path: Path) -> None:
    """A student goes on: with a rate of 0 it stays what it was."""
    first = load(run("a")["model"])
    still = ("optimization.lr=0.0", "optimization.min_lr=0.0", "optimization.warmup_lr=0.0")
    again = load(run("b", f"parent.start={tmp_path / 'a/model'}", *still)["model"])
    assert all(torch.equal(tensor, first.state_dict()[name]) for name, tensor in again.state_dict().items())
    fresh = load_parent(str(parent)).state_dict()["backbone.blocks.0.attention.qkv.weight"]
    assert not torch.equal(first.state_dict()["backbone.blocks.0.attention.qkv.weight"], fresh)


@pytest.mark.parametrize(("change", "words"), [
    ("parent.tokenizer=voronoi", "parent.tokenizer voronoi, got superpixel in .*a/model; set parent.tokenizer to that"),
    ("parent.fill=zero", "parent.fill zero, got image in"),
    ("parent.gradients=false", "parent.gradients False, got True in"),
    ("parent.options.levels=3", "parent.options.levels 3, got 2 in"),
    ("parent.options.nonsense=3", "parent.options.nonsense 3, got none in"),
])
def test_a_start_is_what_the_recipe_says(run: Run, tmp_path: Path, change: str, words: str) -> None:
    run("a", "optimization.epochs=0.4")
    with pytest.raises(TrainingError, match=f"expected parent.start with {words}"):
        run("b", f"parent.start={tmp_path / 'a/model'}", change)


def test_a_start_learns_as_the_recipe_says(run: Run, tmp_path: Path) -> None:
    run("a", "optimization.epochs=0.4")
    told = ("optimization.token_budget=9", "optimization.drop_path=0.1", "parent.options.self_loop=none")
    config = load(run("b", f"parent.start={tmp_path / 'a/model'}", *told)["model"]).config
    assert (config.token_budget, config.drop_path) == (9, 0.1)


def test_what_is_kept(run: Run, parent: Path) -> None:
    """By half, a run saves what lies in the middle of an untrained student and what was learnt."""
    begun = student_of(load_parent(str(parent)), "superpixel", {"compactness": 0.8, "self_loop": "none", "levels": 2})
    learnt, kept = (load(run(f"{share}", f"distill.keep={share}")["model"]).state_dict() for share in (0.0, 0.5))
    torch.testing.assert_close(kept, {name: (learnt[name] + tensor) / 2 for name, tensor in begun.state_dict().items()})
    assert not torch.equal(learnt["head.linear.weight"], kept["head.linear.weight"])


def test_a_parent_that_spit_saved(run: Run, parent: Path, tmp_path: Path) -> None:
    known = load_parent(str(parent))
    known.config = known.config.replace(class_names=("coarse", "fine"))
    save(known, tmp_path / "saved")
    one, other = load(run("a")["model"]), load(run("b", f"parent.weights={tmp_path / 'saved'}")["model"])
    assert all(torch.equal(tensor, one.state_dict()[name]) for name, tensor in other.state_dict().items())
    assert (other.config.class_names, other.config.image_size) == (("coarse", "fine"), 32)


def test_what_does_not_fit(run: Run, photos: Path, parent: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"expected a parent, got none; give --parent vit.safetensors"):
        run("a", "parent.weights=")
    with pytest.raises(TrainingError, match="expected photos to learn from, got none; give --images FOLDER"):
        run("b", "data.train=[]")
    with pytest.raises(TrainingError, match=r"multiple of the parent's patches of 8, got 36; --set data.size=32"):
        run("c", "data.size=36")
    safetensors.torch.save_file(vit(width=64, classes=3), tmp_path / "three.safetensors")
    other = load_parent(str(tmp_path / "three.safetensors"))
    with pytest.raises(TrainingError, match=r"a second teacher of the parent's 2 classes, got 3 from .*three"):
        run("d", f"parent.second={tmp_path / 'three.safetensors'}")
    with pytest.raises(TrainingError, match="got width 64 and 3 classes"):
        run("e", f"parent.start={save(student_of(other, 'superpixel', {'levels': 2}), tmp_path / 'three')}")
    for name in ("coarse", "fine", "third"):
        (tmp_path / "more" / name).mkdir(parents=True)
        shutil.copy(photos / "fine/0.png", tmp_path / "more" / name)
    with pytest.raises(TrainingError, match="parent's 2 classes, a sub-folder each, got 3 classes"):
        run("f", f"data.validation={tmp_path / 'more'}")
    superpixels = SpitModel(load_parent(str(parent)).config.replace(
        tokenizer="superpixel", tokenizer_options={"levels": 2}, gradients=True, fill="image"))
    save(superpixels, tmp_path / "superpixels")
    for changes in ((), (f"parent.start={tmp_path / 'superpixels'}",)):
        with pytest.raises(WeightsError, match="expected a parent with square patches"):
            run(f"g{len(changes)}", f"parent.weights={tmp_path / 'superpixels'}", *changes)
