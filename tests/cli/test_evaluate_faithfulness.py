import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spit as library
from spit.attribution import fit_prototypes

Run = Callable[..., Any]


@pytest.fixture
def data(photo: Callable[..., Path], tmp_path: Path) -> Path:
    for index in range(3):
        photo(tmp_path / "data" / "below" / f"{index}.png", seed=index)
    return tmp_path / "data"


@pytest.fixture
def model(save_tiny: Callable[..., Path]) -> Path:
    return save_tiny(num_classes=4)


def test_table_files_and_going_on(spit: Run, data: Path, model: Path, tmp_path: Path,
                                  names: Callable[[Path], list[str]]) -> None:
    own = library.load_model(model).eval()
    file = fit_prototypes(own, data, size=32).save(tmp_path / "own.safetensors")
    base = ("evaluate", "faithfulness", "--data", data, "--model", model, "--size", 32, "--batch", 2, "-o",
            tmp_path / "out")
    arguments = (*base, "--prototypes", file, "--samples", 8,
                 *(f"--method={name}" for name in ("flow", "lime", "prototype", "random")))
    result = spit(*arguments, "--json")
    assert result.code == 0, result.err
    rows = result.json["rows"]
    assert [row["method"] for row in rows] == ["flow", "lime", "prototype", "random"]
    assert rows[0]["comprehensiveness"]["images"] == 3
    assert rows[0]["paper"] == [0.259, 0.558]
    assert set(rows[0]["tests"]["comprehensiveness > lime"]) == {"t", "freedom", "p"}
    assert result.json["occlusion"] == "the image's mean colour"
    assert names(tmp_path / "out") == [
        "curves.pdf", "curves.png", "curves.svg", "images.jsonl", "results.json", "results.md", "results.tex"]
    assert "flow against lime" in (tmp_path / "out/results.md").read_text()
    assert json.loads((tmp_path / "out/results.json").read_text()) == result.json
    again = spit(*arguments)
    assert "Faithfulness of attributions" in again.out
    assert "results.tex, curves.png, curves.svg and curves.pdf are in" in " ".join(again.out.split())
    assert len((tmp_path / "out/images.jsonl").read_text().splitlines()) == 12


def test_limit_measures_and_no_output(spit: Run, data: Path, model: Path) -> None:
    base = ("evaluate", "faithfulness", "--data", data, "--model", model, "--size", 32, "--limit", 2, "--method",
            "flow", "--json")
    document = spit(*base).json
    assert document["images"] == 2
    [row] = document["rows"]
    assert len(row["shares"]) == 13
    assert set(row["further"]) == {"insertion", "deletion", "seconds"}
    [row] = spit(*base, "--measure", "comp").json["rows"]
    assert len(row["shares"]) == 6
    assert set(row["further"]) == {"seconds"}
    assert "Quantus" in spit(*base[:-1], "--measure", "road").error


def test_several_models_and_methods_at_once(spit: Run, data: Path, model: Path, tmp_path: Path) -> None:
    one, other = model, library.save_model(library.load_model(model), tmp_path / "other")
    document = spit("evaluate", "faithfulness", "--data", data, "--model", f"{one},{other}", "--method",
                    "flow,random", "--size", 32, "--limit", 2, "--json").json
    assert [(row["model"], row["method"]) for row in document["rows"]] == [
        (path.name, method) for path in (one, other) for method in ("flow", "random")]


def test_bad_input_is_one_line(spit: Run, data: Path, model: Path, tmp_path: Path) -> None:
    base = ("evaluate", "faithfulness", "--data", data, "--model", model)
    assert "did you mean 'rollout'" in spit(*base, "--method", "rolout").error
    assert "fit_prototypes" in spit(*base, "--method", "prototype").error
    assert "nowhere" in spit("evaluate", "faithfulness", "--data", tmp_path / "nowhere", "--model", model).error
    assert "no such" in spit(*base, "--method", "prototype", "--prototypes", tmp_path / "no such.safetensors").error


def test_parts_of_a_data_set_are_refused(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path) -> None:
    photo(tmp_path / "data/train/cat/a.png")
    base = ("--model", model, "--data", tmp_path / "data")
    one = ("evaluate", "faithfulness", *base, "--size", 32, "--method", "random")
    assert spit(*one).code == 0, "the only part"
    photo(tmp_path / "data/test/cat/b.png", seed=1)
    for verb in (one, ("evaluate", "classification", *base)):
        assert spit(*verb).error == (f"spit: {tmp_path}/data: expected one part of a data set, got the folder of test "
                                     f"and train; give {tmp_path}/data/test or {tmp_path}/data/train\n")
