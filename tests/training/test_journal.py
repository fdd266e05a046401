import json
import sys
from pathlib import Path
from typing import Any

import pytest

from spit.training import TrainingError
from spit.training.journal import Journal, Listener, read_metrics, write_report


def test_lines_of_steps_that_are_done_again_go(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, Listener())
    for step in range(1, 6):
        journal.write("train", step, {"loss": 1 / step})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "step": 6, "lo')  # what a kill may leave
    assert [line["step"] for line in read_metrics(tmp_path)] == [1, 2, 3, 4, 5]
    again = Journal(tmp_path, 3, Listener())
    again.write("train", 4, {"loss": 0.0})
    assert [json.loads(line)["step"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()] == [1, 2, 3, 4]
    assert read_metrics(tmp_path)[-1] == {"kind": "train", "step": 4, "loss": 0.0}


def test_who_has_no_folder_writes_nothing(tmp_path: Path) -> None:
    Journal(None, 0, Listener()).write("train", 1, {"loss": 1.0})
    assert read_metrics(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full, which is a full disk")
def test_a_full_disk(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, Listener())
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(TrainingError, match=r"cannot append a line \(No space left on device\); make room"):
        journal.write("train", 1, {"loss": 1.0})


def test_a_report(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, Listener())
    for step in range(1, 31):
        journal.write("train", step, {"loss": 2 / step, "top1": 0.1, "lr": 0.1, "images_per_second": 10.0 * step})
        if step % 2 == 0:
            journal.write("validation", step, {"epoch": step / 2, "top1": step / 100, "loss": 1.0, "images": 20})
    recipe: dict[str, Any] = {"model": {"name": "spit_tiny_16"}, "data": {"size": 32, "train": ()}, "run": {"seed": 4},
                              "elastic": {"parts": 8, "own": 4, "keep": ()},
                              "optimization": {"epochs": 15, "batch": 8, "precision": "fp32"}}
    write_report(tmp_path, "spit_tiny_16", recipe, {"steps": 30, "photos": 16})
    text = (tmp_path / "report.md").read_text()
    assert "spit_tiny_16: epochs 15, photos 16" in text
    assert "Training loss 2.0000 (step 1), 0.0667 (step 30); 160 images/s (median)" in text
    assert "- **data**: size 32\n" in text
    assert "- **elastic**: parts 8; own 4\n" in text
    assert "| 30 | 15 | 0.3 | 1 | 20 |" in text
    pytest.importorskip("matplotlib")
    assert (tmp_path / "curves.png").stat().st_size > 1000
    assert "curves.png" in text


def test_missing_extras_are_told_in_the_report_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    listener = Listener()
    listener.say = said.append  # type: ignore[method-assign]
    for module in ("tensorboard", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("spit.training.journal.find_spec", lambda name: None)
    journal = Journal(tmp_path, 0, listener)
    journal.write("train", 1, {"loss": 1.0, "images_per_second": 1.0})
    journal.close()
    write_report(tmp_path, "model", {"data": {"size": 32}, "run": {"seed": 4}, "optimization": {
        "epochs": 1, "batch": 8, "precision": "fp32"}}, {"steps": 1, "photos": 8})
    assert (said, *capsys.readouterr()) == ([], "", "")
    assert "No curves: drawing figures needs matplotlib; install the extra: pip install" in (
        tmp_path / "report.md").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl", "report.md"]
