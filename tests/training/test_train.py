import json
import math
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from spit import create_model, load, load_image
from spit.cli import main
from spit.data.crops import central_square
from spit.errors import SpitError
from spit.evaluation.classification import AnswerCase
from spit.evaluation.samples import Sample
from spit.model import SpitModel
from spit.training import TrainingError
from spit.training.distributed import Team
from spit.training.journal import write_json
from spit.training.recipe import DataRecipe, ModelRecipe, Recipe
from spit.training.train import check_run, claimed, train
from spit.training.validate import Validation
from spit.weights import save


def test_a_run_s_folder(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    one = recipe()
    assert check_run(tmp_path / "new", one) is None
    assert not (tmp_path / "new").exists(), "the run may still be refused"
    write_json(tmp_path / "recipe.json", one.to_dict())
    assert check_run(tmp_path, recipe("optimization.lr=0.5")) is None  # nothing had begun: a killed start
    (tmp_path / "checkpoints").mkdir()
    assert check_run(tmp_path, recipe("run.log=9")) is None  # going on, speaking less often
    with pytest.raises(TrainingError, match=r"holds a run of another recipe: optimization\.lr was 0\.01, is 0\.5"):
        check_run(tmp_path, recipe("optimization.lr=0.5"))
    (tmp_path / "result.json").write_text('{"steps": 3}')
    assert check_run(tmp_path, recipe("run.log=9")) == {"steps": 3}


def test_beginning_anew(recipe: Callable[..., Recipe], tmp_path: Path) -> None:
    assert check_run(tmp_path, recipe(), fresh=True) is None
    write_json(tmp_path / "recipe.json", recipe().to_dict())
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(TrainingError, match=r"holds a run already .*leave out fresh"):
        check_run(tmp_path, recipe(), fresh=True)
    assert check_run(tmp_path, recipe("optimization.lr=0.5"), fresh=True, force=True) is None


@pytest.mark.parametrize(("change", "told"), [
    ("data.train=nowhere", "expected a folder"), ("model.pretrained=./nowhere", "no folder"),
    ("model.options.num_classes=1", "num_classes=2"), ("optimization.accumulate=8", "enlarge the batch")])
def test_a_run_that_is_refused_deletes_nothing(recipe: Callable[..., Recipe], tmp_path: Path, change: str,
                                               told: str) -> None:
    short = ("optimization.epochs=0.5", "optimization.warmup=0", "run.validate=0")
    team = Team(0, 1, torch.device("cpu"))
    train(recipe(*short), tmp_path / "run", team)
    (tmp_path / "run/mine.txt").touch()
    before = sorted((tmp_path / "run").rglob("*"))
    with pytest.raises((SpitError, ValueError), match=told):
        train(recipe(*short, change), tmp_path / "run", team, fresh=True, force=True)
    assert sorted((tmp_path / "run").rglob("*")) == before
    own = f"model.pretrained={tmp_path / 'run/model'}"  # read before it is deleted
    assert train(recipe(*short, own), tmp_path / "run", team, fresh=True, force=True)["resumed"] == 0
    assert (tmp_path / "run/mine.txt").exists()
    assert len([*(tmp_path / "run").rglob("*")]) == len(before), "nothing of the earlier run is left"


def test_one_class_is_refused(recipe: Callable[..., Recipe], photos: Path, tmp_path: Path) -> None:
    only = tmp_path / "only"
    for name in ("coarse", "empty"):
        (only / name).mkdir(parents=True)
    (only / "coarse/a.png").symlink_to(photos / "coarse/0.png")
    with tarfile.open(tmp_path / "three.tar", "w") as shard:
        shard.add(photos / "coarse/0.png", "a.png")
        (tmp_path / "a.cls").write_text("3")
        shard.add(tmp_path / "a.cls", "a.cls")
    for source, told in ((only, "got only coarse;"), (tmp_path / "three.tar", "got only 3;")):
        with pytest.raises(TrainingError, match=f"^expected photos of at least two classes, {told} give a folder"):
            recipe(f"data.train={source}").job(Team(0, 1, torch.device("cpu")))


def test_numbered_shards_may_lack_the_last_classes(recipe: Callable[..., Recipe], photos: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "two.tar", "w") as shard:
        for label in ("0", "1"):
            (tmp_path / "a.cls").write_text(label)
            shard.add(photos / "coarse/0.png", f"{label}.png")
            shard.add(tmp_path / "a.cls", f"{label}.cls")
    more = recipe(f"data.train={tmp_path / 'two.tar'}", "data.validation=[]", "model.options.num_classes=7")
    task = more.job(Team(0, 1, torch.device("cpu"))).task
    assert (task.module.config.num_classes, task.module.config.class_names) == (7, ())


@pytest.mark.parametrize("force", [False, True])
def test_what_is_somebody_else_s(recipe: Callable[..., Recipe], tmp_path: Path, force: bool) -> None:
    (tmp_path / "model").mkdir()
    with pytest.raises(TrainingError, match="holds model, but no run of spit; choose another folder"):
        check_run(tmp_path, recipe(), fresh=force, force=force)
    assert (tmp_path / "model").is_dir()


def test_a_claim(tmp_path: Path) -> None:
    with claimed(tmp_path / "a/new"):
        assert (tmp_path / "a/new").is_dir()
    assert not (tmp_path / "a").exists(), "nothing was written"
    for _ in range(2):
        with claimed(tmp_path / "a/new"):
            (tmp_path / "a/new/recipe.json").touch()
    assert [path.name for path in (tmp_path / "a/new").iterdir()] == ["recipe.json"], "no lock is left"
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="file"), claimed(tmp_path / "file"):
        pass


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Two classes of three photos, each 44 high and 60 or more wide, with a bright stripe at both ends."""
    random = np.random.default_rng(0)
    for label in ("even", "odd"):
        (tmp_path / "wide" / label).mkdir(parents=True)
        for index in range(3):
            pixels = random.integers(0, 90, (44, 60 + 9 * index, 3), dtype=np.uint8)
            pixels[:, :3], pixels[:, -3:] = 255, 200
            Image.fromarray(pixels).save(tmp_path / "wide" / label / f"{index}.png")
    return tmp_path / "wide"


def settings(*changes: str) -> list[str]:
    return [word for change in changes for word in ("--set", change)]


def test_transfer_sees_whole_images(wide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training, validation, prediction and evaluation rescale whole images, and the model remembers it (App. C)."""
    seen: dict[bool, list[Tensor]] = {True: [], False: []}
    forward = SpitModel.forward

    def spy(self: SpitModel, images: Tensor, *given: Any, **options: Any) -> Any:
        seen[self.training].extend(images)
        return forward(self, images, *given, **options)

    save(create_model("vit_tiny_16", num_classes=5, depth=1, width=24, heads=2, eval_crop=0.9), tmp_path / "parent")
    monkeypatch.setattr(SpitModel, "forward", spy)
    command = ["train", "transfer", "-o", str(tmp_path / "run"), "--device", "cpu", "--json"]
    assert main([*command, *settings(
        f"data.train={wide}", f"data.validation={wide}", f"model.pretrained={tmp_path / 'parent'}", "data.size=32",
        "data.workers=0", "optimization.epochs=2", "optimization.batch=4")]) == 0
    paths = sorted(wide.rglob("*.png"))
    whole = {path: central_square(load_image(path), 32, None) for path in paths}
    assert (len(seen[True]), len(seen[False])) == (12, 12)  # two epochs, and a validation after each
    for mode, images in seen.items():
        for path, square in whole.items():
            assert sum(torch.equal(square, image) for image in images) == 2, (mode, path)

    predictor = load(str(tmp_path / "run" / "model"), device="cpu")
    config = predictor.model.config
    assert (config.eval_crop, config.eval_size, config.num_classes) == (None, 32, 2)
    case = AnswerCase(predictor)
    for path, square in whole.items():
        assert torch.equal(predictor(path).images[0], square)
        assert torch.equal(case.read(Sample(path.name, path)), square)


def test_crops_are_seen_as_the_model_remembers_them(wide: Path, tmp_path: Path) -> None:
    """Without data.whole a model keeps its own crop, and validation uses it."""
    save(create_model("vit_tiny_16", num_classes=2, depth=1, width=24, heads=2, eval_crop=0.5), tmp_path / "parent")
    recipe = Recipe(ModelRecipe(pretrained=str(tmp_path / "parent")),
                    DataRecipe(train=(str(wide),), validation=(str(wide),), size=32, workers=0))
    task = recipe.job(Team(0, 1, torch.device("cpu"))).task
    assert task.module.config.eval_crop == 0.5
    images: list[Tensor] = []
    assert isinstance(task.measure, Validation)
    task.measure(lambda batch: images.extend(batch) or torch.zeros(len(batch), 2))  # type: ignore[func-returns-value]
    expected = [central_square(load_image(path), 32, 0.5) for path in sorted(wide.rglob("*.png"))]
    assert torch.equal(torch.stack(images), torch.stack(expected))


def test_the_paper_s_recipes_run(wide: Path, tmp_path: Path) -> None:
    """Pre-training and fine-tuning by App. C with a tiny model: a few steps of the recipes' own options."""
    small = settings(f"data.train={wide}", f"data.validation={wide}", "data.workers=0", "optimization.batch=4",
                     "optimization.epochs=4", "optimization.warmup=1", "optimization.compile=false", "run.log=1",
                     "data.size=32", "data.side=40")
    own = settings("model.name=spit_tiny_16.paper", *(f"model.options.{key}" for key in (
        "depth=3", "width=24", "heads=2", "tokenizer_options.levels=2")))
    first = settings(f"model.pretrained={tmp_path}/pretrain_base_256/model")
    for name, rate, more in (("pretrain_base_256", 0.2, own), ("finetune_base_384", 0.4, first)):
        folder = tmp_path / name
        assert main(["train", name, "-o", str(folder), "--device", "cpu", "--json", *small, *more]) == 0
        model = load(str(folder / "model"), device="cpu").model
        assert [block.drop_path for block in model.backbone.blocks] == [rate] * 3
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        losses = [line["loss"] for line in lines if line["kind"] == "train"]
        assert len(losses) == 6
        assert all(math.isfinite(loss) for loss in losses)
