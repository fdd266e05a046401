from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spit.bench import Check, Latency

Run = Callable[..., Any]


def test_stages_as_json(spit: Run) -> None:
    result = spit("bench", "--size", 32, "--batch", 2, "--rounds", 1, "--device", "cpu", "--no-peer", "--json")
    assert result.code == 0
    assert [row["stage"] for row in result.json["rows"]] == ["tokenizer", "features", "inference", "training"]
    assert result.json["setup"]["compiled"] is False
    assert result.json["setup"]["precision"] == "fp32"


def test_a_table_and_what_is_being_timed(spit: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spit.cli.console.PATIENCE", 0)
    result = spit("bench", "--size", 32, "--batch", 1, "--rounds", 1, "--device", "cpu", "--no-peer", "--no-training")
    assert result.code == 0
    assert "ms/image" in result.out
    assert "training" not in result.out
    assert result.err.splitlines() == [f"spit: Timing {stage}, spit_tiny_16"
                                       for stage in ("tokenizer", "features", "inference")]


def test_latency_as_json(spit: Run) -> None:
    result = spit("bench", "--latency", "--size", 32, "--batch", 2, "--rounds", 5, "--device", "cpu", "--no-peer",
                  "--json")
    assert result.code == 0
    setup = result.json["setup"]
    assert {name: setup[name] for name in ("batches", "calls", "warm_up", "precision", "compiled", "size")} == {
        "batches": [2], "calls": 5, "warm_up": 3, "precision": "fp32", "compiled": False, "size": 32}
    [row] = result.json["rows"]
    assert (row["model"], row["batch"], row["calls"]) == ("spit_tiny_16", 2, 5)
    assert row["p50_ms"] <= row["p99_ms"]


def test_latency_as_a_table(spit: Run, save_tiny: Callable[..., Path]) -> None:
    threads = torch.get_num_threads()
    result = spit("bench", "--latency", "--model", save_tiny(), "--size", 32, "--rounds", 2, "--seconds", 0.01,
                  "--threads", 1, "--device", "cpu")
    assert result.code == 0
    head, *_, headings = result.out.splitlines()[:-7]
    assert "1 thread;" in head
    assert "32², fp32" in head
    assert headings.split("  ")[0] == "batch"
    assert [line.split()[:2] for line in result.out.splitlines()[-7:]] == [
        [str(batch), "2"] for batch in (1, 2, 4, 8, 16, 32, 64)]
    assert torch.get_num_threads() == threads


def test_latency_of_the_runtime(spit: Run) -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    result = spit("bench", "--latency", "--runtime", "--size", 32, "--batch", 2, "--rounds", 5, "--threads", 1,
                  "--device", "cpu", "--no-peer")
    assert result.code == 0
    assert "spit_tiny_16 on spit.runtime, 32², fp32" in result.out
    batch, calls, *figures = result.out.splitlines()[-1].split()
    assert (batch, calls) == ("2", "5")
    assert all(float(figure) > 0 for figure in figures)


def test_latency_beside_timm(spit: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Latency("spit_tiny_16", 1, 9, 12.0, 2.0, 3.0, 500.0, 0.5, 0.25, 1.0),
            Latency("timm 1.0 vit", 1, 9, 196.0, 1.0, 4.0, 1000.0)]
    monkeypatch.setattr("spit.cli.bench.measure_latency", lambda *_: rows)
    result = spit("bench", "--latency", "--size", 32, "--device", "cpu")
    assert "beside timm 1.0 vit" in result.out
    headings, figures = result.out.splitlines()[-2:]
    assert headings.endswith("timm p50  timm p99  of timm's")
    assert figures.split() == ["1", "9", "2.00", "3.00", "500", "12", "0.50", "0.25", "1.00", "1.00", "4.00", "0.50"]


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
    monkeypatch.setattr("spit.cli.bench.check_labels", lambda *_: checks)
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
    assert "--check or --latency, got both" in spit("bench", "--check", "--latency", "--device", "cpu").error
    assert "add --latency" in spit("bench", "--runtime", "--device", "cpu").error
    compiled = spit("bench", "--latency", "--runtime", "--compile", "--device", "cpu")
    assert "no --compile with --runtime" in compiled.error
    assert "seconds above 0" in spit("bench", "--latency", "--seconds", 0, "--device", "cpu").error
