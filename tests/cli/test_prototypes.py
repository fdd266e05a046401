from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import spit as library
from spit.attribution import fit_prototypes, load_prototypes

Run = Callable[..., Any]


@pytest.fixture
def data(photo: Callable[..., Path], tmp_path: Path) -> Path:
    for index in range(5):
        photo(tmp_path / "data" / str(index % 2 + 1) / f"{index}.png", seed=index)
    return tmp_path / "data"


@pytest.fixture
def model(save_tiny: Callable[..., Path]) -> Path:
    return save_tiny(num_classes=4)


def test_they_are_what_the_library_fits(spit: Run, data: Path, model: Path, tmp_path: Path,
                                        names: Callable[[Path], list[str]]) -> None:
    base = ("prototypes", "--data", data, "--model", model, "--size", 32, "--batch", 2, "-o", tmp_path / "out")
    result = spit(*base, "--json")
    assert result.code == 0, result.err
    file = tmp_path / "out" / "tiny.prototypes.safetensors"
    assert (result.json["file"], result.json["images"], result.json["classes"]) == (str(file), 5, 4)
    assert names(tmp_path / "out") == [file.name]
    found = load_prototypes(file)
    expected = fit_prototypes(library.load_model(model).eval(), data, size=32)
    torch.testing.assert_close(found.values, expected.values, atol=2e-3, rtol=1e-2)
    assert torch.equal(found.counts, expected.counts)
    told = spit(*base, "--limit", 3).out
    assert "3 images; " in told
    assert str(file) in told
    assert int(load_prototypes(file).counts.sum()) == 3  # replaced
    explained = spit("explain", data / "1" / "0.png", "--model", model, "--size", 32, "--method", "prototype",
                     "--prototypes", file, "-o", tmp_path / "maps")
    assert explained.code == 0, explained.err


def test_classes_of_folders(spit: Run, data: Path, model: Path, tmp_path: Path) -> None:
    result = spit("prototypes", "--data", data, "--model", model, "--size", 32, "--labelled", "-o", tmp_path, "--json")
    assert load_prototypes(result.json["file"]).counts.tolist() == [0, 3, 2, 0]
    assert (result.json["labels"], result.json["classes_without_images"]) == ("given", 2)


def test_bad_input_is_one_line(spit: Run, data: Path, model: Path, save_tiny: Callable[..., Path],
                               tmp_path: Path) -> None:
    base = ("prototypes", "--data", data, "-o", tmp_path / "out", "--model")
    assert "nowhere" in spit("prototypes", "--data", tmp_path / "nowhere", "--model", model).error
    assert "expected one --model" in spit(*base, model, "--model", "spit_tiny_16").error
    assert "without a head" in spit(*base, save_tiny(num_classes=0)).error
    (data / "3").mkdir()
    (data / "3" / "bad.png").write_text("no image")
    assert "bad.png" in spit(*base, save_tiny(num_classes=4), "--size", 32).error
    (data / "9").mkdir()
    (data / "3" / "bad.png").rename(data / "9" / "bad.png")
    assert "expected 4 classes" in spit(*base, model, "--labelled").error
    assert not (tmp_path / "out").exists()
