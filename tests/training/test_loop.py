import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from spit.data.photos import Photos
from spit.errors import Stopped
from spit.registry import load_model
from spit.training import TrainingError
from spit.training.batches import Batch, Batches
from spit.training.build import build_model
from spit.training.checkpoint import Checkpoints
from spit.training.distributed import Team
from spit.training.journal import Listener, read_metrics
from spit.training.loop import Outcome, fit
from spit.training.recipe import Recipe
from spit.training.task import Classification

ALONE = Team(0, 1, torch.device("cpu"))
PLAIN = ("model.options.drop_path=0.0", "model.options.token_budget=none", "run.validate=0")


class Words(Listener):
    def __init__(self) -> None:
        self.said: list[str] = []
        self.steps: list[int] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def advance(self, step: int) -> None:
        self.steps.append(step)


class Hurt(Classification):
    """A loss that is no number at some steps."""

    bad: tuple[int, ...] = ()
    step = -1
    dtypes: ClassVar[list[torch.dtype]] = []

    def loss(self, network: Callable[..., Any], batch: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        assert self.module.training
        self.step += 1
        if torch.is_autocast_enabled("cpu"):
            self.dtypes.append(torch.get_autocast_dtype("cpu"))
        with torch.autocast("cpu", enabled=False):  # its AMX kernels are not allowed on every machine that has AMX
            loss, figures = super().loss(network, batch)
        return (loss * float("nan") if self.step in self.bad else loss), figures


Run = Callable[..., Outcome]


@pytest.fixture
def run(photos: Path, recipe: Callable[..., Recipe], tmp_path: Path) -> Run:
    """``run("name", "optimization.epochs=1")`` trains the tiny recipe into a folder of that name."""

    def start(name: str, *changes: str, bad: tuple[int, ...] = (), listener: Words | None = None) -> Outcome:
        chosen = recipe(*PLAIN, *changes)
        listed = Photos([photos], chosen.data.side, labelled=True)
        task = Hurt(build_model(chosen, "ab"), chosen.optimization.smoothing)
        task.bad = bad
        batches = Batches(listed, chosen.optimization.batch, chosen.run.seed, resident=True)
        return fit(task, batches, tmp_path / name, ALONE, chosen, listener)

    return start


@pytest.mark.parametrize(("between", "steps"), [
    ("1", [3, 5, 8, 10]), ("2", [5, 10]), ("0", [10]), ("0.1", range(1, 11))])
def test_validation_follows_each_epoch_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, between: str,
                                            steps: Sequence[int]) -> None:
    """20 photos in batches of 8: an epoch ends within a step."""
    monkeypatch.setattr(Hurt, "validate", lambda self: {"top1": 0.5})
    run("a", f"run.validate={between}")
    assert [line["step"] for line in read_metrics(tmp_path / "a") if line["kind"] == "validation"] == list(steps)


@pytest.mark.parametrize(("batch", "epochs", "words"), [(64, 1, "64: 1 step"), (8, 0.1, "0.1 epochs of 20 photos")])
def test_a_run_of_less_than_a_step_is_told(run: Run, batch: int, epochs: float, words: str) -> None:
    listener = Words()
    outcome = run("few", f"optimization.batch={batch}", f"optimization.epochs={epochs}", "optimization.warmup=0",
                  listener=listener)
    assert outcome.steps == 1
    assert words in listener.said[0]


def losses(folder: Path) -> list[float]:
    return [line["loss"] for line in read_metrics(folder) if "loss" in line]


def test_a_run(run: Run, tmp_path: Path) -> None:
    words = Words()
    outcome = run("a", listener=words)
    assert (outcome.steps, outcome.resumed) == (10, 0)
    assert words.steps == list(range(1, 11))
    lines = read_metrics(tmp_path / "a")
    assert [line["step"] for line in lines] == list(range(1, 11))
    assert {"kind", "step", "loss", "top1", "lr", "epoch", "images_per_second"} == lines[0].keys()
    assert lines[-1]["epoch"] == 4
    assert Checkpoints(tmp_path / "a/checkpoints").steps() == [8, 10]
    model = load_model(tmp_path / "a/model")
    assert model.config.num_classes == 2
    again = run("a")
    assert (again.resumed, again.steps) == (10, 10)


def test_it_learns(run: Run, tmp_path: Path) -> None:
    """Waves from coarser waves, without what makes it hard."""
    run("a", "optimization.epochs=40", "augment.policies=none", "augment.cutmix=0", "augment.scale=[0.8, 1.0]",
        "optimization.smoothing=0.0", "run.log=25", "run.checkpoint=1000")
    assert losses(tmp_path / "a")[0] > 0.3
    assert losses(tmp_path / "a")[-1] < 0.1


def test_passes_make_the_same_step(run: Run, tmp_path: Path) -> None:
    run("one")
    run("three", "optimization.accumulate=3")  # 8 photos as 2, 2 and 4
    assert losses(tmp_path / "three") == pytest.approx(losses(tmp_path / "one"), rel=1e-3)


def test_bf16(run: Run) -> None:
    Hurt.dtypes.clear()
    run("full", "optimization.epochs=1")
    assert Hurt.dtypes == []
    run("half", "optimization.epochs=1", "optimization.precision=bf16")
    assert Hurt.dtypes == [torch.bfloat16] * 2


def test_a_step_that_is_no_number_is_left_out(run: Run, tmp_path: Path) -> None:
    words = Words()
    run("a", "run.log=5", "run.patience=3", bad=(2, 3, 6), listener=words)
    lines = read_metrics(tmp_path / "a")
    assert [(line["step"], line.get("skipped")) for line in lines] == [(4, 2), (5, None), (8, 1), (10, None)]
    assert all(line["loss"] < 10 for line in lines)
    assert any("skipped 2 steps before step 4: their gradients were not finite" in text for text in words.said)
    assert all(tensor.isfinite().all() for tensor in load_model(tmp_path / "a/model").state_dict().values())


def test_too_many_of_them_stop_the_run(run: Run, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"3 steps .* step 8; .*step 4 .*optimization\.lr"):
        run("a", "run.log=2", "run.patience=3", bad=(5, 6, 7))
    assert run("a").resumed == 4  # and with a remedy it goes on


def test_ctrl_c(run: Run, tmp_path: Path) -> None:
    class Impatient(Words):
        def advance(self, step: int) -> None:
            super().advance(step)
            if step == 3:
                import signal

                signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped, match="stopped at step 3 of 10 and saved; run the same command to resume"):
        run("a", listener=(words := Impatient()))
    assert words.said[-1] == "stopping after this step, with a checkpoint; Ctrl-C again stops at once, without one"
    assert run("a").resumed == 3
    run("b")
    assert losses(tmp_path / "a") == losses(tmp_path / "b")


def test_other_photos_or_another_length(run: Run, photos: Path, tmp_path: Path) -> None:
    run("a", "optimization.epochs=1")
    with pytest.raises(TrainingError, match="is of a run of another length, steps 2, now 5"):
        run("a", "optimization.epochs=2")
    path = next((tmp_path / "a/checkpoints").glob("*.json"))
    about = json.loads(path.read_text())
    path.write_text(json.dumps({**about, "photos": "0123"}))
    with pytest.raises(TrainingError, match="is of a run on other photos, fingerprint 0123, now"):
        run("a", "optimization.epochs=1")


def test_a_batch_too_small(run: Run) -> None:
    with pytest.raises(ValueError, match="expected a batch of at least 2 photos for each of 1 processes and 8 passes"):
        run("a", "optimization.accumulate=8")
