import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spit.registry import load_model
from spit.training.recipe import DataRecipe

pytestmark = pytest.mark.usefixtures("one_thread")
Run = Callable[..., Any]
RECIPE = Path(__file__).parents[2] / "recipes/smoke.toml"


@pytest.fixture
def command(photo: Callable[..., Path], tmp_path: Path) -> list[object]:
    for index in range(8):
        photo(tmp_path / "photos" / ("even", "odd")[index % 2] / f"{index}.png", seed=index)
    photos = tmp_path / "photos"
    return ["train", RECIPE, "--set", f"data.train={photos}", "--set", f"data.validation={photos}", "--set",
            "optimization.batch=4", "--set", "optimization.epochs=2", "-o", tmp_path / "run", "--device", "cpu"]


def test_from_nothing_to_a_model_and_again(spit: Run, command: list[object], tmp_path: Path,
                                           names: Callable[[Path], list[str]]) -> None:
    result = spit(*command, "--json")
    assert result.code == 0, result.err
    assert (result.json["steps"], result.json["photos"], result.json["classes"]) == (4, 8, 2)
    assert result.json["figures"]["images"] == 8
    assert re.search(r"^step 1/4 about \d+ s left$", result.err, re.MULTILINE)
    assert re.search(r"step 4/4 validation top-1 [\d.]+ % loss", result.err)
    assert "top-5" not in result.err
    assert load_model(tmp_path / "run/model").config.depth == 2
    assert (tmp_path / "run/classes.txt").read_text() == "even\nodd\n"
    written = names(tmp_path / "run")
    assert {"metrics.jsonl", "recipe.json", "report.md", "result.json"} <= set(written)

    again = spit(*command)
    assert again.code == 0
    assert "was already finished: 4 steps" in again.out
    assert re.search(r"^Validation: top-1 [\d.]+ %, loss", again.out, re.MULTILINE)
    assert names(tmp_path / "run") == written

    assert "holds a run of another recipe: optimization.lr was 0.001, is 0.5; choose another folder" in spit(
        *command, "--set", "optimization.lr=0.5").error
    assert "holds a run already" in spit(*command, "--fresh").error
    fresh = spit(*command, "--set", "optimization.lr=0.5", "--fresh", "--force", "--json")
    assert fresh.code == 0
    assert "finished" not in fresh.json


def test_the_time_that_is_left(spit: Run, command: list[object]) -> None:
    result = spit(*command, "--set", "run.log=2")
    assert re.search(r"^step 2/4 loss .* im/s about \d+ s left$", result.err, re.MULTILINE)
    assert "left" not in next(line for line in result.err.splitlines() if line.startswith("step 4/4"))


def test_the_model_knows_its_classes_and_its_size(spit: Run, command: list[object], tmp_path: Path) -> None:
    assert spit(*command).code == 0
    assert spit(*command, "--set", "model.options.num_classes=2", "-o", tmp_path / "more").code == 0
    model, photo = tmp_path / "run/model", tmp_path / "photos/odd/1.png"
    assert load_model(tmp_path / "more/model").config.class_names == ("even", "odd")
    document = spit("classify", photo, "--model", model, "--json").json
    config = load_model(model).config
    assert (config.train_size, config.eval_size) == (32, 32)
    assert sorted(item["name"] for item in document["images"][0]["top"]) == ["even", "odd"]
    assert "% odd" in spit("classify", photo, "--model", model).out
    measured = spit("evaluate", "classification", "--data", tmp_path / "photos", "--model", model, "--json").json
    assert (measured["size"], measured["images"]) == (32, 8)


def test_a_full_disk(spit: Run, command: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.replace

    def full(source: Any, target: Any) -> None:
        if "step-00000004" in str(target):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        result = spit(*command, "--set", "run.checkpoint=2")
    assert (result.code, result.out) == (2, "")
    assert "the checkpoint of step 4 could not be written: the disk is full; the one of step 2 is intact" in result.err
    result = spit(*command, "--json")
    assert (result.code, result.json["resumed"]) == (0, 2)


def test_bad_input_is_one_line(spit: Run, command: list[object], tmp_path: Path,
                               names: Callable[[Path], list[str]]) -> None:
    before = names(tmp_path)
    assert "no such recipe" in spit("train", tmp_path / "nowhere.toml").error
    assert "did you mean 'epochs'" in spit(*command, "--set", "optimization.epoch=3").error
    assert "unknown model 'spit_tiny'" in spit(*command, "--set", "model.name=spit_tiny").error
    assert "nowhere: expected a folder" in spit(*command, "--set", "data.train=nowhere", "-o", tmp_path / "other").error
    assert "data.train" in spit("train", RECIPE, "-o", tmp_path / "third", "--device", "cpu").error
    assert spit(*command, "--force").error == "spit: --force needs --fresh\n"
    assert "got a folder" in spit("train", tmp_path / "photos").error
    (tmp_path / "file").write_text("")
    assert "expected a folder for --output, got the file" in spit(*command, "-o", tmp_path / "file").error
    assert "cannot write to the folder" in spit(*command, "-o", tmp_path / "file/run").error
    for classes in (1, 3):
        assert f"expected num_classes=2 in [model.options], the number of classes of the photos, got {classes}" in spit(
            *command, "--set", f"model.options.num_classes={classes}", "-o", tmp_path / "fourth").error
    small = spit(*command, "--set", "optimization.batch=2", "--set", "optimization.accumulate=2")
    assert (small.code, small.err.splitlines()[-1]) == (
        2, "spit: expected a batch of at least 2 photos for each of 1 processes and 2 passes, got 2; enlarge the batch")
    assert names(tmp_path) == sorted([*before, "file"]), "nothing is left"
    assert not (tmp_path / "run").exists()


def test_one_process_at_a_time(spit_process: Run, command: list[object], tmp_path: Path) -> None:
    from spit.training.train import claimed

    with claimed(tmp_path / "run"):
        assert "another process is training there" in spit_process(*command).error


def test_a_trained_model_is_a_start(spit: Run, command: list[object], tmp_path: Path,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """One of one's own, and one that comes with spit by its name."""
    assert spit(*command).code == 0
    result = spit(*command, "--set", f"model.pretrained={tmp_path / 'run/model'}", "-o", tmp_path / "next", "--json")
    assert result.code == 0, result.err
    assert result.json["name"] == str(tmp_path / "run/model")
    assert f"started from {tmp_path / 'run/model'}; " in (tmp_path / "next/report.md").read_text()
    report = (tmp_path / "run/report.md").read_text()
    assert "- **model**: architecture spit_tiny_16.paper; started from new weights; options." in report
    transfer = ["train", "transfer", "--set", "model.pretrained=spit_tiny_16", "--set", f"data.train={tmp_path}/photos",
                "--set", "data.size=32", "--set", "data.side=36", "--set", "data.workers=0", "--set",
                "optimization.batch=4", "--set", "optimization.epochs=1", "-o", tmp_path / "transfer", "--device",
                "cpu"]
    monkeypatch.setattr(DataRecipe, "processes", 0)  # of a machine with fewer cores than workers
    result = spit(*transfer, "--set", "data.workers=4")
    assert result.code == 0, result.err
    assert "spit_tiny_16 from spit_tiny_16.deit_retrofit, 5.6 M parameters, 2 classes" in result.err
    report = (tmp_path / "transfer/report.md").read_text()
    assert report.startswith("# spit_tiny_16 from spit_tiny_16.deit_retrofit: epochs 1, photos 8\n")
    assert "- **model**: architecture spit_tiny_16; started from spit_tiny_16.deit_retrofit; options." in report
    assert "; workers 0; " in report
    assert re.search(r"^Training loss [\d.]+ \(mean of steps 1 to 2\); ", report, re.MULTILINE)
    config = load_model(tmp_path / "transfer/model").config
    assert (config.fill, config.class_names, config.eval_size) == ("image", ("even", "odd"), 32)
    wrong = spit(*command, "--set", "model.pretrained=spit_tiny_16", "-o", tmp_path / "wrong").error
    # The recipe has other values.
    assert wrong.startswith("spit: spit_tiny_16.deit_retrofit: expected width=192, depth=12, as its weights have, got ")
    assert "published_voronoi, got 'hexagon'" in spit(
        *transfer, "--set", "model.options.tokenizer=hexagon", "-o", tmp_path / "hexagon").error
    assert "unknown model 'spit_tinny_16'" in spit(*transfer, "--set", "model.pretrained=spit_tinny_16", "-o",
                                                   tmp_path / "unknown").error
