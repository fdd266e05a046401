"""``spit evaluate classification``, and what its verbs share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spit as library
from spit.model import SpitModel

Run = Callable[..., Any]


@pytest.fixture
def data(photo: Callable[..., Path], tmp_path: Path) -> Path:
    """Two classes of three pictures each."""
    for label in range(2):
        for index in range(3):
            photo(tmp_path / "data" / f"class{label}" / f"{index}.png", seed=3 * label + index)
    return tmp_path / "data"


@pytest.fixture
def model(save_tiny: Callable[..., Path]) -> Path:
    return save_tiny(num_classes=2)


def test_classification(spit: Run, data: Path, model: Path) -> None:
    result = spit("evaluate", "classification", "--data", data, "--model", model, "--size", 32)
    assert result.code == 0, result.err
    assert "6 images of" in result.out
    assert "Wilson" in result.out
    assert f"{model} " in result.out
    for absent in ("top-5", "ReaL", "seeds"):
        assert absent not in result.out


def test_an_interrupt_says_how_to_go_on(spit: Run, data: Path, model: Path, tmp_path: Path,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spit.evaluation.classification.classify", interrupt)
    command = ("evaluate", "classification", "--data", data, "--model", model, "--size", 32)
    for options, told in (((), "stopped; with --output the"), (("--output", tmp_path / "out"), "stopped; the")):
        result = spit(*command, *options)
        assert (result.code, result.err) == (130, f"spit: {told} same command resumes what was measured\n")


def test_files_and_going_on(spit: Run, data: Path, model: Path, tmp_path: Path,
                            names: Callable[[Path], list[str]]) -> None:
    real = tmp_path / "real.json"
    real.write_text(json.dumps({f"class{label}/{index}.png": [label] * (index > 0)
                                for label in range(2) for index in range(3)}))
    arguments = ("evaluate", "classification", "--data", data, "--model", model, "--size", 32, "--batch", 4,
                 "--real", real, "-o", tmp_path / "out", "--json")
    first = spit(*arguments)
    [row] = first.json["rows"]
    assert (row["model"], row["images"], row["top1"]["images"], row["real"]["images"]) == (str(model), 6, 6, 4)
    assert row["top1"]["low"] < row["top1"]["value"] < row["top1"]["high"]
    assert names(tmp_path / "out") == ["images.jsonl", "results.json", "results.md", "results.tex"]
    assert json.loads((tmp_path / "out/results.json").read_text()) == first.json
    text = (tmp_path / "out/results.md").read_text()
    assert f"| {model} | superpixel | logits |" in text
    assert "| ReaL |" in text
    assert "ReaL counts images with a label." in text
    assert r"tiny & superpixel & logits & 0." in (tmp_path / "out/results.tex").read_text()
    lines = (tmp_path / "out/images.jsonl").read_text()
    (tmp_path / "out/images.jsonl").write_text(lines[:-5])
    again = spit(*arguments)
    assert first.err == ""
    assert "5 of 6 answers are taken from an earlier run\n" in again.err
    assert again.json["rows"][0]["top1"] == row["top1"]
    assert len((tmp_path / "out/images.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize("head", ["knn", "linear"])
def test_heads(head: str, spit: Run, data: Path, model: Path) -> None:
    base = ("evaluate", "classification", "--data", data, "--model", model, "--size", 32, "--head", head, "--json")
    split = spit(*base, "--train-per-class", 2).json
    assert (split["images"], split["rows"][0]["head"]) == (2, head)
    assert split["train"].startswith("4 images")
    assert spit(*base, "--train", data, "--neighbors", 1).json["rows"][0]["top1"]["value"] == 1


def _of_size(model: SpitModel, size: int | None) -> SpitModel:
    model.config = model.config.replace(eval_size=size)
    return model


@pytest.mark.parametrize("verb", ["classification", "faithfulness"])
def test_models_are_asked_at_their_own_size(verb: str, spit: Run, data: Path, save_tiny: Callable[..., Path],
                                            tmp_path: Path) -> None:
    own = save_tiny(num_classes=2, eval_size=32)
    model = library.load_model(own)
    silent, other = (library.save_model(_of_size(model, size), tmp_path / f"{size}") for size in (None, 24))
    base = ("evaluate", verb, "--data", data, "--limit", 2, "--json", "--model")
    assert spit(*base, own).json["size"] == 32
    assert spit(*base, f"{silent},{own}").json["size"] == 32  # one that does not say goes along
    assert spit(*base, f"{own},{other}", "--size", 40).json["size"] == 40
    assert "expected models of one size, got tiny 32, 24 24; give --size" in spit(
        *base, f"{own},{other}").error


def test_bad_input_is_one_line(spit: Run, data: Path, model: Path, tmp_path: Path) -> None:
    def error(verb: str, *arguments: object) -> str:
        return spit("evaluate", verb, *arguments).error

    both = ("--data", data, "--model", model)
    assert "a model of 1000 classes" in error("classification", "--data", data)  # the default model
    assert "nowhere: expected a folder" in error("classification", "--data", tmp_path / "nowhere", "--model", model)
    assert "did you mean 'spit_tiny_16" in error("classification", "--data", data, "--model", "spit_tiny")
    assert "no trained weights of spit_large_16 come" in error("classification", "--data", data, "--model",
                                                               "spit_large_16")
    assert "once, got one twice" in error("classification", *both, "--model", model)
    assert "logits, knn, linear" in error("classification", *both, "--head", "svm", "--train", data)
    assert "give one of --train" in error("classification", *both, "--head", "knn")
    assert "go with --head" in error("classification", *both, "--train", data)
    assert "more than 3 images" in error("classification", *both, "--head", "knn", "--train-per-class", 3)
    assert "real.json" in error("classification", *both, "--real", tmp_path / "real.json")
    assert "fp32, bf16" in error("classification", *both, "--precision", "fp8")
    (tmp_path / "file").write_text("")
    assert "got the file" in error("classification", *both, "-o", tmp_path / "file")
    (data / "class0" / "0.png").write_text("no image")
    assert "0.png" in error("classification", *both, "--size", 32)
    (data / "class2").mkdir()
    (data / "class1" / "0.png").rename(data / "class2" / "0.png")
    assert "for a model of 2 classes; got 3" in error("classification", *both)


def test_help(spit: Run) -> None:
    for verb in ("classification", "faithfulness"):
        assert verb in spit("evaluate", "--help").out
        assert "--device" in spit("evaluate", verb, "--help").out


def test_a_first_run_with_equal_images_has_no_earlier_answers(spit: Run, data: Path, model: Path,
                                                              tmp_path: Path) -> None:
    """Both of two equal images count, and a renamed image keeps its answer."""
    (data / "class1" / "copy.png").write_bytes((data / "class0" / "0.png").read_bytes())
    arguments = ("evaluate", "classification", "--data", data, "--model", model, "--size", 32, "-o", tmp_path / "out",
                 "--json")
    first = spit(*arguments)
    assert (first.json["rows"][0]["images"], first.err) == (7, "")
    (data / "class1" / "copy.png").rename(data / "class1" / "other.png")
    assert spit(*arguments).err == "7 of 7 answers are taken from an earlier run\n"


def test_a_journal_of_an_older_version(spit: Run, data: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    journal = tmp_path / "out" / "images.jsonl"
    arguments = ("evaluate", "classification", "--data", data, "--model", model, "--size", 32, "--limit", 1, "-o",
                 tmp_path / "out")
    journal.write_text('{"case": "0", "image": "class0/0.png", "top": [1], "tokens": 3, "seconds": 1}\n')
    assert (spit(*arguments).code, spit(*arguments).err) == (0, "1 of 1 answers are taken from an earlier run\n")
    journal.write_text("[1]\n")
    assert "choose another --output or remove it" in spit(*arguments).error
