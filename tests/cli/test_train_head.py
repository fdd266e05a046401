from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import spit as library
from spit.data.folders import image_paths
from spit.segmentation import load_head
from spit.training.head import HeadOptions, fit_head

Run = Callable[..., Any]


def test_it_is_what_the_library_trains(spit: Run, photo: Callable[..., Path], save_tiny: Callable[..., Path],
                                       tmp_path: Path, names: Callable[[Path], list[str]]) -> None:
    for index in range(3):
        photo(tmp_path / "data" / f"{index}.png", seed=index)
    model = save_tiny(num_classes=0)
    base = ("train-head", "--data", tmp_path / "data", "--model", model, "--size", 32, "--steps", 3, "--generations", 2,
            "-o", tmp_path / "out")
    result = spit(*base, "--json")
    assert result.code == 0, result.err
    file = tmp_path / "out" / "tiny.head.safetensors"
    assert names(tmp_path / "out") == [file.name]
    assert (result.json["file"], result.json["photos"], result.json["numbers"]) == (str(file), 3, 33)
    expected = fit_head(library.load_model(model).eval(), image_paths(tmp_path / "data"),
                        HeadOptions(steps=3, generations=2), size=32)
    assert torch.equal(load_head(file).weights, expected.weights)
    told = spit(*base, "--limit", 2)
    assert "2 photos; 33 numbers on tokens of layers 0" in told.out

    segment = ("segment", tmp_path / "data" / "0.png", "--model", model, "-o", tmp_path / "masks", "--json")
    found = spit(*segment, "--token-head", file, "--method", "head")
    assert found.code == 0, found.err
    assert found.json["images"][0]["tau"] is None
    again = spit(*segment, "--token-head", file, "--method", "head")
    assert len(again.json["done_earlier"]) == 1
    assert spit(*base, "--sample-seed", 1).code == 0  # the same name, another head: nothing is taken from before
    assert spit(*segment, "--token-head", file, "--method", "head").json["done_earlier"] == []


def test_bad_input_is_one_line(spit: Run, photo: Callable[..., Path], save_tiny: Callable[..., Path],
                               tmp_path: Path) -> None:
    picture, model = photo(tmp_path / "data" / "0.png"), save_tiny()
    base = ("train-head", "--data", tmp_path / "data", "-o", tmp_path / "out", "--model")
    assert "nowhere" in spit("train-head", "--data", tmp_path / "nowhere", "--model", model).error
    assert "layers below 1, got 4" in spit(*base, model, "--layers", 4).error
    assert "expected one --model" in spit(*base, model, "--model", "spit_tiny_16").error
    assert "spit train-head" in spit("segment", picture, "--model", model, "--method", "both").err
    assert not (tmp_path / "out").exists()
