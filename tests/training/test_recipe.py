from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from spit.registry import create_model, list_models
from spit.training.errors import TrainingError
from spit.training.recipe import FREE, ModelRecipe, Recipe, _flat, differences, read_recipe, recipes
from spit.training.train import build_model
from spit.weights import save

RECIPES = [path for path in sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
           if not path.stem.startswith("retrofit")]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_those_that_come_with_spit(path: Path) -> None:
    recipe = read_recipe(path)
    assert recipe.model.name in list_models()
    top = path.read_text().partition("[model]")[0]
    assert "Expected time:" in top
    assert "Expected result:" in top
    assert recipe.run.output == f"runs/{path.stem}"


def test_appendix_c() -> None:
    names = {path.stem: path for path in RECIPES}
    assert {"pretrain_base_256", "finetune_base_384", "transfer", "imagenette_tiny", "smoke"} <= names.keys()
    first, second = (read_recipe(names[name]) for name in ("pretrain_base_256", "finetune_base_384"))
    said = first.optimization
    assert (said.epochs, said.lr, said.min_lr, said.warmup_lr, said.warmup) == (300, 3e-3, 1e-6, 1e-5, 5)
    assert (said.weight_decay, said.eps, said.drop_path, said.precision) == (0.02, 1e-7, 0.2, "fp32")
    assert (first.data.size, first.augment.scale, first.augment.cutmix) == (256, (0.08, 1.0), 1.0)
    assert set(first.augment.policies) == {"rand", "three"}
    said = second.optimization
    assert (said.epochs, said.lr, said.drop_path, second.data.size) == (30, 1e-4, 0.4, 384)
    assert (second.augment.layers, second.augment.magnitude) == (2, 20)


def test_changes(recipe: Callable[..., Recipe]) -> None:
    changed = recipe("optimization.epochs=0.5", "model.name=vit_small_16", "data.train=a/b",
                     "optimization.betas=[0.8, 0.9]", "model.options.depth=3", "data.validation=[]",
                     "optimization.compile=true")
    assert changed.optimization.epochs == 0.5
    assert changed.model.name == "vit_small_16"
    assert changed.data.train == ("a/b",)
    assert changed.optimization.betas == (0.8, 0.9)
    assert changed.model.options["depth"] == 3
    assert changed.data.validation == ()
    assert changed.optimization.compile is True


@pytest.mark.parametrize(("change", "words"), [
    ("optimization.epoch=3", r"unknown key of \[optimization\] 'epoch'; the nearest known one is 'epochs'"),
    ("optimizer.epochs=3", "unknown section 'optimizer'; the nearest known one is 'optimization'"),
    ("augment.cutmixing=1", "the nearest known one is 'cutmix'"),
    ("optimization.epochs=many", "expected optimization.epochs of type float, got 'many'"),
    ("optimization.batch=2.5", "expected optimization.batch of type int, got 2.5"),
    ("optimization.compile=1", "expected optimization.compile of type bool, got 1"),
    ("optimization.accumulate=true", "expected optimization.accumulate of type int, got True"),
    ("optimization.batch=7", "expected an even batch"),
    ("optimization.epochs=0", "expected epochs above 0, got 0"),
    ("optimization.ema=1", "expected ema below 1, got 1"),
    ("optimization.betas=[0.9]", "expected optimization.betas as a list of 2"),
    ("optimization.betas=[0.9, 1.0]", "expected betas from 0 to below 1"),
    ("optimization.precision=fp16", "expected precision fp32 or bf16, got 'fp16'"),
    ("data.workers=-1", "expected workers of at least 0, got -1"),
    ("run.log=0", "expected log of at least 1, got 0"),
    ("augment.flip=2", "expected flip from 0 to 1, got 2"),
    ("epochs=3", "expected section.key=value"),
    ("optimization.epochs", "expected section.key=value"),
])
def test_wrong_values(change: str, words: str, recipe: Callable[..., Recipe]) -> None:
    with pytest.raises(TrainingError, match=words):
        recipe(change)


def test_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smoke").mkdir()  # a run's folder is no recipe
    own = read_recipe(next(path for path in RECIPES if path.stem == "smoke"))
    assert read_recipe(Path("smoke")) == read_recipe(Path("smoke.toml")) == own
    (tmp_path / "smoke.toml").write_text("[run]\nseed = 7\n")
    assert read_recipe(Path("smoke.toml")).run.seed == 7, "a file that is there comes first"
    with pytest.raises(TrainingError, match=r"smok: expected a recipe, but .* the nearest are smoke, "):
        read_recipe(Path("smok"))


def test_those_that_were_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lib/site-packages"
    (package / "spit-0.dist-info").mkdir(parents=True)
    (package / "spit-0.dist-info/METADATA").write_text("Metadata-Version: 2.4\nName: spit\nVersion: 0\n")
    (package / "spit-0.dist-info/RECORD").write_text("spit/py.typed,,\n../../share/spit/recipes/own.toml,,\n")
    monkeypatch.setattr("sys.path", [str(package)])
    monkeypatch.setattr("spit.training.recipe.__file__", str(package / "spit/training/recipe.py"))
    assert {name: path.resolve() for name, path in recipes().items()} == {
        "own": tmp_path / "share/spit/recipes/own.toml"}


def test_no_recipe(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="expected a recipe, but there is none"):
        read_recipe(tmp_path / "nowhere.toml")
    (tmp_path / "bad.toml").write_text("[model\n")
    with pytest.raises(TrainingError, match="expected a recipe in TOML"):
        read_recipe(tmp_path / "bad.toml")
    (tmp_path / "flat.toml").write_text("model = 3\n")
    with pytest.raises(TrainingError, match=r"expected a table \[model\], got 3"):
        read_recipe(tmp_path / "flat.toml")


def test_differences(recipe: Callable[..., Recipe]) -> None:
    one = recipe().to_dict()
    assert differences(one, recipe("data.workers=3", "run.log=7", "data.train=elsewhere").to_dict()) == []
    assert differences(one, recipe("optimization.lr=1.0", "model.options.depth=3").to_dict()) == [
        "model.options.depth was 2, is 3", "optimization.lr was 0.01, is 1.0"]
    assert set(FREE) <= _flat(Recipe().to_dict()).keys()
    assert {item.name for item in fields(Recipe)} == one.keys()


def test_a_new_head(tmp_path: Path) -> None:
    parent = create_model("spit_tiny_16", num_classes=3)
    save(parent, tmp_path / "parent")
    recipe = Recipe(model=ModelRecipe(pretrained=str(tmp_path / "parent")))
    child = build_model(recipe, 7)
    assert child.config.num_classes == child.head.linear.out_features == 7
    assert torch.equal(child.embedder.class_token, parent.embedder.class_token)
    assert torch.equal(child.head.linear.weight, build_model(recipe, 7).head.linear.weight)  # from the run's seed
    assert child.config.drop_path == 0.2


def test_a_model(recipe: Callable[..., Recipe]) -> None:
    model = build_model(recipe("model.options.layer_scale=none", "optimization.token_budget=0"), 5)
    config = model.config
    assert (config.depth, config.width, config.num_classes) == (2, 24, 5)
    assert (config.layer_scale, config.token_budget, config.drop_path) == (None, None, 0.3)
    assert model.training
    with pytest.raises(ValueError, match="unknown model option 'dept'"):
        build_model(recipe("model.options.dept=3"), 5)
