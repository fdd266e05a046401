"""A run that is killed, over and over, ends as the unbroken one does."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import safetensors.torch
import torch

from spit.registry import load_model
from spit.training.distributed import Team
from spit.training.journal import read_metrics
from spit.training.recipe import Recipe
from spit.training.train import train

Process = Callable[..., "Popen[str]"]


def wait_for(folder: Path, steps: int, child: "Popen[str]") -> None:
    """Until so many steps are done."""
    give_up = time.monotonic() + 120
    while not any(line["step"] >= steps for line in read_metrics(folder)):
        assert child.poll() is None, child.communicate()[0]
        assert time.monotonic() < give_up
        time.sleep(0.002)


def figures(folder: Path) -> list[dict[str, Any]]:
    return [{key: value for key, value in line.items() if key != "images_per_second"} for line in read_metrics(folder)]


def test_a_run_that_was_stopped_and_killed(process: Process, recipe_file: Path, tmp_path: Path) -> None:
    changes = ("run.checkpoint=1", "optimization.accumulate=2", "optimization.epochs=24")
    command = [argument for change in changes for argument in ("--set", change)]

    def start() -> "Popen[str]":
        return process("-m", "spit.cli", "train", recipe_file, *command, "--set", "data.workers=2", "-o",
                       tmp_path / "broken", "--device", "cpu", start_new_session=True)

    child = start()
    wait_for(tmp_path / "broken", 3, child)
    os.killpg(child.pid, signal.SIGTERM)  # as schedulers do: its workers get it too
    said, _ = child.communicate(timeout=60)
    assert child.returncode == 130, said
    assert "of 60 and saved; run the same command to resume" in said
    stopped = int(said.split("stopped at step ")[1].split()[0])
    about = json.loads((tmp_path / f"broken/checkpoints/step-{stopped:08d}.json").read_text())
    assert (about["step"], about["total"]) == (stopped, 60)

    child = start()
    wait_for(tmp_path / "broken", stopped + 2, child)  # half of the time goes into checkpoints
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert not (tmp_path / "broken/model").exists()

    child = start()
    train(Recipe.read(recipe_file, changes), tmp_path / "whole", Team(0, 1, torch.device("cpu")))
    said, _ = child.communicate(timeout=120)
    assert child.returncode == 0, said
    assert "resuming from step" in said
    assert figures(tmp_path / "broken") == figures(tmp_path / "whole")
    assert [line["step"] for line in figures(tmp_path / "broken") if line["kind"] == "train"] == list(range(1, 61))
    ends = [safetensors.torch.load_file(tmp_path / name / "checkpoints/step-00000060.safetensors")
            for name in ("broken", "whole")]
    assert ends[0].keys() == ends[1].keys()
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    models = [load_model(tmp_path / name / "model").state_dict() for name in ("broken", "whole")]
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])
    assert any(not torch.equal(models[0][name], ends[0][f"module.{name}"]) for name in models[0])  # the averages
