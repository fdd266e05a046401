"""Two processes of torchrun, one of which dies on the way, have the loss curve of one process."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
import torch

from spit.training.distributed import Team
from spit.training.journal import read_metrics
from spit.training.recipe import Recipe
from spit.training.train import train

CHANGES = ("optimization.epochs=12", "optimization.lr=2e-3", "model.options.drop_path=0.0",
           "model.options.token_budget=none", "run.checkpoint=2")


def children(pid: int) -> list[int]:
    """The processes that a process started, oldest first."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(parent) == pid and state != "Z":
                found.append(int(folder.name))
    return sorted(found)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds torchrun's processes in /proc")
def test_one_curve_and_an_elastic_restart(process: Callable[..., "Popen[str]"], recipe_file: Path,
                                          tmp_path: Path) -> None:
    command = [argument for change in CHANGES for argument in ("--set", change)]
    child = process("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "--max-restarts", 1, "-m",
                    "spit.cli", "train", recipe_file, *command, "-o", tmp_path / "two", "--device", "cpu")
    give_up = time.monotonic() + 120
    while not any(line["step"] >= 3 for line in read_metrics(tmp_path / "two")):
        assert child.poll() is None, child.communicate()[0]
        assert time.monotonic() < give_up
        time.sleep(0.002)
    os.kill(children(child.pid)[-1], signal.SIGKILL)
    train(Recipe.read(recipe_file, CHANGES), tmp_path / "one", Team(0, 1, torch.device("cpu")))
    said, _ = child.communicate(timeout=60)
    assert child.returncode == 0, said
    assert "resuming from step" in said
    assert "on 2 × cpu" in said

    lines = [read_metrics(tmp_path / name) for name in ("one", "two")]
    assert [(line["kind"], line["step"]) for line in lines[0]] == [(line["kind"], line["step"]) for line in lines[1]]
    assert len(lines[0]) == 30 + 6
    for one, two in zip(*lines, strict=True):
        assert two["loss"] == pytest.approx(one["loss"], rel=1e-3), one["step"]
        if one["kind"] == "validation":
            assert two["images"] == one["images"] == 20
            assert two["top1"] == pytest.approx(one["top1"])
