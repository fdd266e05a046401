from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spit.bench import Check

Run = Callable[..., Any]


def test_stages_as_json(spit: Run) -> None:
    result = spit("bench", "--size", 32, "--batch", 2, "--rounds", 1, "--device", "cpu", "--json")
    assert result.code == 0
    assert [row["stage"] for row in result.json["rows"]] == ["tokenizer", "features", "inference", "training"]
    assert result.json["setup"]["compiled"] is False
    assert result.json["setup"]["precision"] == "fp32"


def test_a_table_and_what_is_being_timed(spit: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spit.cli.console.PATIENCE", 0)
    result = spit("bench", "--size", 32, "--batch", 1, "--rounds", 1, "--device", "cpu", "--no-training")
    assert result.code == 0
    assert "ms/image" in result.out
    assert "training" not in result.out
    assert result.err.splitlines() == [f"spit: Timing {stage}, spit_tiny_16"
                                       for stage in ("tokenizer", "features", "inference")]


def test_check_of_a_folder(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    photo(tmp_path / "a.png")
    result = spit("bench", "--check", "--data", tmp_path, "--device", "cpu", "--json")
    assert result.code == 0
    assert result.json["exact"] is True
    assert {check["images"] for check in result.json["checks"]} == {1}


def test_check_as_a_table(spit: Run, photo: Callable[..., Path], tmp_path: Path,
                          monkeypatch: pytest.MonkeyPatch) -> None:
    photo(tmp_path / "a.png")
    checks = [Check("voronoi, seed=1", batch, same, 9) for batch, same in ((1, 9), (7, 8), (64, 9))]
    monkeypatch.setattr("spit.bench.check.check_labels", lambda *_: checks)
    result = spit("bench", "--check", "--data", tmp_path, "--device", "cpu")
    assert result.code == 1
    assert result.out.splitlines()[0].endswith(": images whose labels equal the reference's")
    assert [line.split("  ")[0] for line in result.out.splitlines()[1:]] == ["tokenizer", "voronoi, seed=1"]
    assert result.out.split()[-4:] == ["9", "9", "8", "9"]


def test_bad_input_is_one_line(spit: Run, tmp_path: Path) -> None:
    assert "fp16 is for a GPU; use fp32 or bf16 on a CPU" in spit(
        "bench", "--precision", "fp16", "--device", "cpu").error
    assert "fp32, bf16, fp16" in spit("bench", "--precision", "int8", "--device", "cpu").error
    assert "unknown model" in spit("bench", "--model", "spit_huge", "--device", "cpu").error
    assert "none" in spit("bench", "--data", tmp_path / "none", "--device", "cpu").error
