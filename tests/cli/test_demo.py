import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import spit as library
from spit.cli.demo import NEXT

Run = Callable[..., Any]


def test_end_to_end(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    path = photo(tmp_path / "a.png", 96, 64)
    result = spit("demo", "--image", path, "-o", tmp_path / "out")
    assert result.code == 0, result.err
    lines = " ".join(result.out.split())  # a narrow terminal breaks them
    assert lines.startswith("a.png, 96 × 64 pixels: ")
    assert "tokens in" in lines
    assert lines.count("%") == 4  # three classes, and the foreground
    assert str(tmp_path / "out/demo.png") in result.out
    assert lines.split("Next: ")[1].startswith("spit serve")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["demo.png"]
    with Image.open(tmp_path / "out/demo.png") as picture:
        assert picture.mode == "RGB"
        assert picture.width > 3 * 300
        assert picture.getpixel((0, 0)) == (255, 255, 255)


def test_what_to_try_next_exists(spit: Run) -> None:
    for line in NEXT:
        verb = line.split()[1]
        assert spit(*([verb, "--help"] if verb != "--help" else ["--help"])).code == 0, line


def test_dark(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    assert spit("demo", "--image", photo(tmp_path / "a.png", 96, 64), "--theme", "dark", "-o", tmp_path).code == 0
    with Image.open(tmp_path / "demo.png") as picture:
        assert max(picture.getpixel((0, 0))) < 40


def test_json_is_the_librarys_answer(spit: Run, photo: Callable[..., Path], save_tiny: Callable[..., Path],
                                     tmp_path: Path) -> None:
    path, model = photo(tmp_path / "a.png", 96, 64), save_tiny(num_classes=7)
    document = spit("demo", "--image", path, "-o", tmp_path / "out", "--model", model, "--json").json
    prediction = library.load(model)(path, crop=False)
    assert document["tokens"] == int(prediction.partition.counts[0])
    assert document["milliseconds"] > 0
    assert [item["name"] for item in document["classes"]] == [name for name, _ in prediction.top(3)[0]]
    assert document["foreground"] == pytest.approx(float(prediction.segment().mask.float().mean()), abs=1e-6)
    assert Path(document["picture"]).is_file()


@pytest.mark.parametrize("size", [(1, 1), (1, 90), (1300, 3)])
def test_odd_shapes(size: tuple[int, int], spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    assert spit("demo", "--image", photo(tmp_path / "a.png", *size), "-o", tmp_path / "out").code == 0


def test_a_photo_that_the_model_sees_reduced(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    result = spit("demo", "--image", photo(tmp_path / "a.png", 640, 480), "-o", tmp_path / "out")
    assert result.code == 0, result.err


def test_refusals_write_nothing(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    path, out = photo(tmp_path / "a.png"), tmp_path / "out"
    assert "nowhere.png" in spit("demo", "--image", tmp_path / "nowhere.png", "-o", out).error
    assert "no file" in spit("demo", "--image", path, "-o", out, "--model", "none.safetensors").error
    assert "expected a folder" in spit("demo", "--image", path, "-o", path).error
    assert not out.exists()


def test_without_scikit_image_the_extra_is_named(spit: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "skimage", None)
    error = spit("demo", "-o", tmp_path / "out").error
    assert "pip install 'spit-vit[demo]'" in error
    assert "--image" in error
