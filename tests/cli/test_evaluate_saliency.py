"""``spit evaluate saliency``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

Run = Callable[..., Any]


@pytest.fixture
def data(photo: Callable[..., Path], tmp_path: Path) -> Path:
    for index in range(4):
        photo(tmp_path / "data" / "images" / f"{index}.png", seed=index)
        (tmp_path / "data" / "masks").mkdir(exist_ok=True)
        Image.fromarray(np.kron(np.eye(2), np.ones((20, 24))).astype(np.uint8) * 255).save(
            tmp_path / "data" / "masks" / f"{index}.png")
    return tmp_path / "data"


@pytest.fixture
def model(save_tiny: Callable[..., Path]) -> Path:
    return save_tiny(tokenizer_options={"levels": 2}, num_classes=2)


def test_rows_files_and_going_on(spit: Run, data: Path, model: Path, tmp_path: Path,
                                 names: Callable[[Path], list[str]]) -> None:
    base = ("evaluate", "saliency", "--data", data, "--model", model, "--baseline", model, "-o", tmp_path / "out")
    first = spit(*base, "--json")
    assert first.code == 0, first.err
    rows = first.json["rows"]
    assert [(row["model"], row["tokenizer"], row["cut"]["cut_on"]) for row in rows] == [
        ("tiny", "superpixel", "tokens"), ("tiny (baseline)", "patch", "keys"), ("tiny (baseline)", "patch", "tokens")]
    assert [row["cut"]["tau"] for row in rows] == [None, 0.2, 0.2]
    assert [row["cut"]["foreground"] for row in rows] == ["border", "largest", "largest"]
    pages = ["page_1_tiny_tokens.png", "page_2_tiny_keys.png", "page_3_tiny_tokens.png"]
    assert names(tmp_path / "out") == ["images.jsonl", *pages, "results.json", "results.md", "results.tex"]
    assert json.loads((tmp_path / "out/results.json").read_text()) == first.json
    lines = (tmp_path / "out/images.jsonl").read_text()
    assert len(lines.splitlines()) == 12
    again = spit(*base)
    assert "Unsupervised saliency: 4 images of" in again.out
    assert f"results.tex, {pages[0]}, {pages[1]} and {pages[2]} are in" in " ".join(again.out.split())
    assert (tmp_path / "out/images.jsonl").read_text() == lines


def test_which_images_and_tokens(spit: Run, data: Path, model: Path) -> None:
    base = ("evaluate", "saliency", "--data", data, "--model", model, "--json")
    assert list(spit(*base, "--first", 2).json["rows"][0]["scores"]) == ["0", "1"]
    assert list(spit(*base, "--limit", 2).json["rows"][0]["scores"]) == ["0", "2"]
    coarse, fine = (spit(*base, "--first", 1, "--levels", levels, "--cut-on", "keys").json["rows"][0]["tokens"]
                    for levels in (3, 1))
    assert fine > 2 * coarse


def test_bad_input_is_one_line(spit: Run, data: Path, model: Path, tmp_path: Path) -> None:
    def error(*arguments: object) -> str:
        return spit("evaluate", "saliency", *arguments).error

    both = ("--data", data, "--model", model)
    assert "nowhere: expected a folder" in error("--data", tmp_path / "nowhere", "--model", model)
    assert "pairs of folders" in error("--data", data / "images", "--model", model)
    assert "go together" in error(*both, "--mask-folder", "masks")
    assert "tau of at most 1" in error(*both, "--tau", 3)
    assert "from -1 to 0, got 4" in error(*both, "--layer", 4)
    (tmp_path / "file").write_text("")
    assert "got the file" in error(*both, "-o", tmp_path / "file")
    (data / "masks" / "3.png").unlink()
    assert "3.png: expected its mask" in error(*both)
