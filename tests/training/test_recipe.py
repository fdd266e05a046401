import os
import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest
import torch

from spit.documents import flat
from spit.errors import WeightsError
from spit.registry import create_model, load_model, model_config
from spit.training import TrainingError
from spit.training.build import build_model
from spit.training.recipe import FREE, DataRecipe, ModelRecipe, Optimization, Recipe
from spit.training.retrofit import RetrofitRecipe
from spit.weights import save

RECIPES = [path for path in sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
           if "spit retrofit" not in path.read_text()]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_those_that_come_with_spit(path: Path) -> None:
    recipe = Recipe.read(path)
    assert recipe.model.pretrained or model_config(recipe.model.name)
    assert recipe.run.output == f"runs/{path.stem}"


PAPER = {  # App. C; what fine-tuning does not name stays as in pre-training
    "pretrain_base_256": {
        "model.options.drop_path": 0.2, "model.options.drop_path_uniform": True, "data.size": 256, "data.whole": False,
        "augment.policies": ["rand", "three"], "augment.layers": 2, "augment.magnitude": 15, "augment.cutmix": 1.0,
        "augment.cutmix_policies": ["three"], "augment.scale": [0.08, 1.0], "optimization.epochs": 300,
        "optimization.lr": 3e-3, "optimization.min_lr": 1e-6, "optimization.warmup_lr": 1e-5, "optimization.warmup": 5,
        "optimization.eps": 1e-7, "optimization.weight_decay": 0.02, "optimization.precision": "fp32"},
    "transfer": {
        "data.size": 256, "data.whole": True, "augment.policies": ["none"], "augment.flip": 0.0, "augment.cutmix": 0.0,
        "optimization.epochs": 10, "optimization.lr": 1e-4, "optimization.weight_decay": 0.02,
        "optimization.precision": "fp32"},
}
PAPER["finetune_base_384"] = PAPER["pretrain_base_256"] | {
    "model.options.drop_path": 0.4, "data.size": 384, "augment.magnitude": 20, "optimization.epochs": 30,
    "optimization.lr": 1e-4}


@pytest.mark.parametrize("name", PAPER)
def test_appendix_c(name: str) -> None:
    recipe = flat(Recipe.read(Path(name)).to_dict())
    assert {key: recipe[key] for key in PAPER[name]} == PAPER[name]


def test_what_app_c_does_not_name_is_the_same_in_fine_tuning() -> None:
    first, second = (flat(Recipe.read(Path(name)).to_dict()) for name in ("pretrain_base_256", "finetune_base_384"))
    changed = {key for key in first.keys() | second.keys() if key not in FREE and first.get(key) != second.get(key)}
    assert changed == {"augment.magnitude", "data.side", "data.size", "model.name", "model.options.drop_path",
                       "model.options.layer_scale", "model.options.token_budget", "model.pretrained",
                       "optimization.batch", "optimization.epochs", "optimization.lr"}


def test_changes(recipe: Callable[..., Recipe]) -> None:
    changed = recipe("optimization.epochs=1", "model.name=vit_small_16", "data.train=a/b",
                     "optimization.betas=[0.8, 0.9]", "model.options.depth=3", "data.validation=[]",
                     "optimization.compile=true")
    assert changed.optimization.epochs == 1
    assert changed.model.name == "vit_small_16"
    assert changed.data.train == ("a/b",)
    assert changed.optimization.betas == (0.8, 0.9)
    assert changed.model.options["depth"] == 3
    assert changed.data.validation == ()
    assert changed.optimization.compile is True


@pytest.mark.parametrize(("change", "words"), [
    ("optimization.epoch=3", r"\[optimization\] .*'epoch'.*'epochs'"), ("optimizer.epochs=3", "'optimization'"),
    ("optimization.epochs=many", "epochs .*'many'"), ("optimization.batch=7", "even"),
    ("optimization.warmup=4.5", r"tiny\.toml: .*4, .*4\.5.*optimization\.warmup"), ("data.size=7", r"\[data\] .*16.*7"),
    ("epochs=3", r"section\.key=value"), ("optimization.epochs", r"section\.key=value")])
def test_wrong_values(change: str, words: str, recipe: Callable[..., Recipe]) -> None:
    with pytest.raises(TrainingError, match=words):
        recipe(change)


def test_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smoke").mkdir()  # a run's folder is no recipe
    own = Recipe.read(next(path for path in RECIPES if path.stem == "smoke"))
    assert Recipe.read(Path("smoke")) == Recipe.read(Path("smoke.toml")) == own
    (tmp_path / "smoke.toml").write_text("[run]\nseed = 7\n")
    assert Recipe.read(Path("smoke.toml")).run.seed == 7, "a file that is there comes first"
    with pytest.raises(TrainingError, match=r"^smok: no such recipe; did you mean 'smoke'\?$"):
        Recipe.read(Path("smok"))
    with pytest.raises(TrainingError, match=r"^nosuch: no such recipe; spit has elastic_tiny, .*, transfer$"):
        Recipe.read(Path("nosuch"))
    with pytest.raises(TrainingError, match=r"^\.: expected a recipe, a TOML file or .*smoke, .*, got a folder$"):
        Recipe.read(Path("."))
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    with pytest.raises(TrainingError, match=r"^photo\.jpg: expected a recipe, .*, got a file that is not text$"):
        Recipe.read(Path("photo.jpg"))


@pytest.mark.parametrize(("text", "words"), [
    ("[model\n", "TOML"), ("[modell]\n", "'modell'"), ("model = 3\n", r"\[model\]")])
def test_no_recipe(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(TrainingError, match=words):
        Recipe.read(tmp_path / "bad.toml")


def test_changes_since_an_earlier_run(recipe: Callable[..., Recipe]) -> None:
    one = recipe().to_dict()
    assert recipe("data.workers=3", "run.log=7", "data.train=elsewhere").changes_since(one) == ""
    assert recipe("optimization.lr=1.0", "model.options.depth=3").changes_since(one) == (
        "model.options.depth was 2, is 3; optimization.lr was 0.01, is 1.0")
    older = recipe().to_dict()
    del older["data"]["whole"]  # an option that was added since
    assert recipe().changes_since(older) == ""
    assert recipe("data.whole=true").changes_since(older) == "data.whole was false, is true"
    assert set(FREE) - flat(Recipe().to_dict()).keys() == {"data.kept"}
    assert {item.name for item in fields(Recipe)} == one.keys()


def test_a_retrofit_that_is_older_than_an_option_of_its_own() -> None:
    """What is missing had the default of a retrofit, not that of training from scratch."""
    older = RetrofitRecipe().to_dict()
    del older["distill"]["keep"], older["data"]["side"]
    assert RetrofitRecipe().changes_since(older) == ""
    assert RetrofitRecipe.read(None, ["distill.keep=0.1", "data.side=288"]).changes_since(older) == (
        "data.side was 224, is 288; distill.keep was 0.0, is 0.1")


def test_a_new_head(tmp_path: Path) -> None:
    parent = create_model("spit_tiny_16", num_classes=3)
    save(parent, tmp_path / "parent")
    recipe = Recipe(model=ModelRecipe(pretrained=str(tmp_path / "parent"), options={"drop_path": 0.2}))
    child = build_model(recipe, "abcdefg")
    assert child.config.num_classes == child.head.linear.out_features == 7
    assert torch.equal(child.embedder.class_token, parent.embedder.class_token)
    again = build_model(recipe, "abcdefg")  # from the run's seed
    assert torch.equal(child.head.linear.weight, again.head.linear.weight)
    assert child.config.drop_path == 0.2


def test_a_model(recipe: Callable[..., Recipe]) -> None:
    model = build_model(recipe("model.options.layer_scale=none", "model.options.token_budget=none"), "abcde")
    config = model.config
    assert (config.depth, config.width, config.num_classes) == (2, 24, 5)
    assert (config.layer_scale, config.token_budget, config.drop_path) == (None, None, 0.3)
    with pytest.raises(ValueError, match="unknown model option 'dept'"):
        build_model(recipe("model.options.dept=3"), "abcde")
    assert build_model(recipe("model.options.num_classes=7"), "01234").config.num_classes == 7


@pytest.mark.parametrize("source", ["spit_tiny_16", "spit_tiny_16.deit_retrofit"])
def test_a_model_that_comes_with_spit(source: str) -> None:
    known = load_model(source)
    model = build_model(Recipe(model=ModelRecipe("vit_base_16", source)), "abc")
    assert model.config == known.config.replace(
        num_classes=3, class_names=("a", "b", "c"), train_size=256, eval_size=256)
    assert torch.equal(model.embedder.projection.weight, known.embedder.projection.weight)
    with pytest.raises(WeightsError, match=r"expected depth=12, .* got depth=13"):
        build_model(Recipe(model=ModelRecipe(pretrained=source, options={"depth": 13})), "abc")


def test_a_recipe_for_a_model_of_the_release() -> None:
    options = {"tokenizer": "published", "extractor": "published", "depth": 1}
    config = build_model(Recipe(model=ModelRecipe("spit_tiny_16.paper", options=options)), "abc").config
    assert (config.tokenizer, config.tokenizer_options, config.extractor) == ("published", {}, "published")
    with pytest.raises(ValueError, match=r"\[model.options\] .* in place of preset='published'"):
        build_model(Recipe(model=ModelRecipe("spit_tiny_16.paper", options={"preset": "published"})), "abc")


def test_options_of_a_tokenizer() -> None:
    config = model_config("spit_tiny_16")
    known = config.tokenizer_options
    assert ModelRecipe(options={"tokenizer_options": {"levels": 3}}).apply_to(config).tokenizer_options == {
        **known, "levels": 3}
    other = ModelRecipe(options={"tokenizer": "voronoi"}).apply_to(config)
    assert (other.tokenizer, other.tokenizer_options) == ("voronoi", {})


def test_recipes_of_older_versions(tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_text("[model]\nname = 'spit_base_16'\ngradients = false\nnum_classes = 0\n"
                    "[optimization]\ndrop_path = 0.1\ntoken_budget = 0\n")
    assert Recipe.read(path, ["optimization.drop_path=0.3"]).model == ModelRecipe(
        "spit_base_16", options={"gradients": False, "drop_path": 0.3, "token_budget": "none"})
    path.write_text("[parent]\ntokenizer = 'voronoi'\nfill = 'mean'\nstart = 'runs/a'\n[parent.options]\ncells = 9\n")
    assert RetrofitRecipe.read(path, ["parent.options.seed=2"]).model == ModelRecipe(pretrained="runs/a", options={
        "tokenizer": "voronoi", "fill": "mean", "tokenizer_options": {"cells": 9, "seed": 2}})


@pytest.mark.parametrize(("key", "default", "asked"), [
    ("data.kept", "", "/dev/shm"), ("elastic.levels", [], [3]), ("parent.second", "", "spit_tiny_16"),
    ("distill.second", 1.0, 0.5), ("distill.temperature", 1.0, 0.7)])
def test_options_that_are_gone(key: str, default: object, asked: object) -> None:
    """Old recipes load and their runs resume; what asks for the option is refused by its name."""
    recipe = RetrofitRecipe.read(None, [(key, default)])
    assert recipe == RetrofitRecipe()
    section, _, name = key.partition(".")
    old = recipe.to_dict()
    old[section] = {**old[section], name: default}
    assert recipe.changes_since(old) == ""
    with pytest.raises(TrainingError, match=re.escape(key)):
        RetrofitRecipe.read(None, [(key, asked)])


def test_the_learning_rate_goes_up_and_down() -> None:
    rate = partial(Optimization(warmup_lr=1e-5, lr=3e-3, min_lr=1e-6).rate, warmup=10, total=110)
    assert rate(0) == pytest.approx(1e-5)
    assert rate(5) == pytest.approx((1e-5 + 3e-3) / 2)  # half a cosine, not a line, but the same in the middle
    assert rate(2) < 1e-5 + 0.2 * 3e-3
    assert rate(10) == pytest.approx(3e-3)
    assert rate(60) == pytest.approx((3e-3 + 1e-6) / 2)
    assert rate(110) == pytest.approx(1e-6)
    rates = [rate(step) for step in range(110)]
    assert rates[:11] == sorted(rates[:11])
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_no_warmup_and_nothing_but_warmup() -> None:
    asked = Optimization(warmup_lr=0.0, lr=1.0, min_lr=0.0)
    assert asked.rate(0, warmup=0, total=4) == 1
    assert asked.rate(2, warmup=4, total=4) == pytest.approx(0.5)


def test_no_more_decoding_processes_than_cores() -> None:
    cores = len(os.sched_getaffinity(0))
    assert [DataRecipe(workers=workers).processes for workers in (0, 1, 1000)] == [0, 1, cores]
