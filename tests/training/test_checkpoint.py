import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from spit.files import TEMPORARY
from spit.training import TrainingError
from spit.training.checkpoint import Checkpoints


class Killed(BaseException):
    """What a process feels of kill -9."""


def tensors(step: int) -> dict[str, torch.Tensor]:
    return {"module.a": torch.full((3,), float(step)), "step.a": torch.tensor(float(step))}


def saved(folder: Path, *steps: int) -> Checkpoints:
    checkpoints = Checkpoints(folder / "checkpoints")
    for step in steps:
        checkpoints.save(step, tensors(step), {"total": 9})
    return checkpoints


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "none").load() is None
    checkpoints = saved(tmp_path, 1, 2, 10)
    assert checkpoints.steps() == [2, 10]
    assert sorted(path.name for path in checkpoints.folder.iterdir()) == [
        f"step-{step:08d}.{suffix}" for step in (2, 10) for suffix in ("json", "safetensors")]
    found = checkpoints.load()
    assert found is not None
    about, read = found
    assert (about["step"], about["total"]) == (10, 9)
    assert read.keys() == tensors(10).keys()
    assert all(torch.equal(read[name], tensor) for name, tensor in tensors(10).items())


@pytest.mark.parametrize("damage", ["bits", "short", "missing", "json"])
def test_a_damaged_one_falls_back(damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    path = checkpoints.folder / "step-00000002.safetensors"
    data = path.read_bytes()
    if damage == "bits":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "short":
        path.write_bytes(data[:-1])
    elif damage == "missing":
        path.unlink()
    else:
        path.with_suffix(".json").write_text("{")
    with caplog.at_level(logging.WARNING, "spit"):
        found = checkpoints.load()
    assert found is not None
    assert found[0]["step"] == 1
    assert "step-00000002.safetensors is damaged" in caplog.text
    checkpoints.save(2, tensors(2), {})  # the run comes by again
    again = checkpoints.load()
    assert again is not None
    assert again[0]["step"] == 2
    for file in checkpoints.folder.glob("*.safetensors"):
        file.write_bytes(b"")
    with pytest.raises(TrainingError, match="every checkpoint is damaged"):
        checkpoints.load()


def test_what_a_killed_process_left_goes(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1)
    left = checkpoints.folder / f"{TEMPORARY}0"
    left.write_bytes(b"half")
    os.utime(left, times=(0, 0))
    checkpoints.save(2, tensors(2), {})
    assert len(list(checkpoints.folder.iterdir())) == 4


@pytest.mark.parametrize("call", ["open", "fsync", "replace", "unlink"])
def test_killed_at_any_call(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a process dies at the n-th call of each kind, the checkpoint before or the new one is whole."""
    found = set()
    for n in range(8):
        folder = tmp_path / f"{call}{n}"
        saved(folder, 1, 2)
        calls = 0
        real: Any = getattr(os, call)

        def dying(*arguments: Any, real: Any = real, n: int = n, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > n:
                raise Killed
            return real(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, dying)
            try:
                saved(folder, 3)
                ended = True
            except Killed:
                ended = False
        newest = Checkpoints(folder / "checkpoints").load()
        assert newest is not None
        step = newest[0]["step"]
        assert all(torch.equal(newest[1][name], tensor) for name, tensor in tensors(step).items())
        assert step == 3 if ended else step in (2, 3)
        found.add((ended, step))
        saved(folder, 4)
        assert sorted(path.name for path in (folder / "checkpoints").glob("*.safetensors"))[-1] == (
            "step-00000004.safetensors")
        assert len(list((folder / "checkpoints").iterdir())) == 4  # nothing half-written stays
    assert (True, 3) in found
    assert len(found) > 1


@pytest.mark.parametrize("writes", [0, 1])
def test_a_full_disk(writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    before = sorted(path.name for path in checkpoints.folder.iterdir())
    real, calls = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 2 * writes:  # each file is synced, and then its folder
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(TrainingError, match=r"step 3 could not be written: the disk is full; the one of step 2 is "
                                                r"intact; make room and run the same command"):
            checkpoints.save(3, tensors(3), {})
    assert sorted(path.name for path in checkpoints.folder.iterdir()) == before
    newest = checkpoints.load()
    assert newest is not None
    assert newest[0]["step"] == 2
