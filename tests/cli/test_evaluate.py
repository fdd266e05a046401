import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spit.evaluation.runner import Journal

Run = Callable[..., Any]


@pytest.fixture
def data(photo: Callable[..., Path], tmp_path: Path) -> Path:
    """Two photos with a label map each."""
    (tmp_path / "data" / "labels").mkdir(parents=True)
    for index in range(2):
        photo(tmp_path / "data" / "images" / f"{index}.png", seed=index)
        np.save(tmp_path / "data" / "labels" / f"{index}.npy", np.arange(40 * 48).reshape(40, 48) // 480)
    return tmp_path / "data"


def test_a_table(spit: Run, data: Path) -> None:
    result = spit("evaluate", "superpixels", "--data", data, "--algorithm", "slic", "--count", 30, "--workers", 0)
    assert result.code == 0
    assert "Superpixels compared: 2 images of" in result.out
    assert "About 30 regions" in result.out
    assert "SLIC (scikit-image)" in result.out


def test_files_and_json(spit: Run, data: Path, tmp_path: Path, names: Callable[[Path], list[str]]) -> None:
    pytest.importorskip("matplotlib")
    arguments = ("evaluate", "superpixels", "--data", data, "--algorithm", "watershed,slic", "--count", 40,
                 "--count", 20, "--workers", 0, "-o", tmp_path / "out", "--json")
    result = spit(*arguments)
    assert result.code == 0
    assert [(row["method"], row["wanted"]) for row in result.json["rows"]] == [
        ("watershed", 20), ("watershed", 40), ("slic", 20), ("slic", 40)]
    assert names(tmp_path / "out") == ["curves.png", "images.jsonl", "results.json", "results.md"]
    assert json.loads((tmp_path / "out/results.json").read_text())["rows"] == result.json["rows"]
    assert "## About 20 regions" in (tmp_path / "out/results.md").read_text()
    lines = (tmp_path / "out/images.jsonl").read_text()
    assert spit(*arguments).json == result.json  # nothing is measured again
    assert (tmp_path / "out/images.jsonl").read_text() == lines


def test_two_runs_do_not_share_a_folder(spit: Run, data: Path, tmp_path: Path,
                                        names: Callable[[Path], list[str]]) -> None:
    base = ("evaluate", "superpixels", "--data", data, "--algorithm", "slic", "--count", 20, "--workers", 0, "-o",
            tmp_path / "out")
    with Journal(tmp_path / "out/images.jsonl"):
        told = spit(*base).error
    assert told == (f"spit: {tmp_path / 'out/images.jsonl'}: another evaluation is writing there; wait for it, or "
                    "choose another --output\n")
    assert spit(*base).code == 0
    assert not [name for name in names(tmp_path / "out") if name.startswith(".")]


def test_a_limit(spit: Run, data: Path) -> None:
    result = spit("evaluate", "superpixels", "--data", data, "--algorithm", "slic", "--count", 30, "--workers", 0,
                  "--limit", 1, "--json")
    assert result.json["images"] == result.json["rows"][0]["images"] == 1


def test_sbd(spit: Run, data: Path) -> None:
    for index in range(2):
        (data / "labels" / f"{index}.npy").unlink()
        rows = ("\n".join(" ".join(["0"] * 24 + ["6"] * 24) for _ in range(40)), "0 1\n2")[index]
        (data / "labels" / f"{index}.regions.txt").write_text(rows)
    base = ("evaluate", "superpixels", "--data", data, "--algorithm", "spit-paper", "--count", 30, "--workers", 0)
    told = spit(*base).error
    assert "1.regions.txt: expected a label map of integers" in told
    (data / "labels" / "1.regions.txt").write_text((data / "labels" / "0.regions.txt").read_text())
    assert spit(*base, "--json").json["rows"][0]["images"] == 2


def test_bad_input_is_one_line(spit: Run, data: Path, tmp_path: Path) -> None:
    def error(*arguments: object) -> str:
        return spit("evaluate", "superpixels", *arguments).error

    assert "nowhere: expected a folder" in error("--data", tmp_path / "nowhere")
    assert "did you mean 'seeds'" in error("--data", data, "--algorithm", "seed")
    assert "count of at least 1" in error("--data", data, "--count", 0)
    assert "--data" in error()
    (tmp_path / "file").write_text("")
    assert "got the file" in error("--data", data, "-o", tmp_path / "file")
    (data / "labels" / "1.npy").unlink()
    assert "1.png: expected its label map" in error("--data", data)
    np.save(data / "labels" / "1.npy", np.zeros((4, 4), int))
    assert "(40, 48), got (4, 4)" in error("--data", data, "--workers", 0)
    assert "superpixels" in spit("evaluate", "superpixel").error


def test_data_is_looked_for_before_extras(spit: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spit.evaluation.superpixels.methods.find_spec", lambda name: None)
    assert "no such path exists" in spit("evaluate", "superpixels", "--data", tmp_path / "nowhere").error
    (tmp_path / "file").write_text("")
    assert spit("evaluate", "superpixels", "--data", tmp_path / "file").error.endswith("labels/, got a file\n")


def test_a_missing_extra_is_named(spit: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = spit("evaluate", "superpixels", "--data", data, "--algorithm", "watershed", "--count", 20, "--workers", 0,
                  "-o", tmp_path / "out")
    assert result.code == 0
    assert "no curves: " in result.err
    assert "'spit-vit[plots]'" in result.err
    assert not (tmp_path / "out/curves.png").exists()
    assert (tmp_path / "out/results.md").exists()


def test_help_names_the_protocols(spit: Run) -> None:
    assert "superpixels" in spit("evaluate", "--help").out
    assert "--workers" in spit("evaluate", "superpixels", "--help").out
