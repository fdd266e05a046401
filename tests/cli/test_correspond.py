"""``spit correspond``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from spit.drawing.panel import MARGIN

Run = Callable[..., Any]


@pytest.fixture
def model(save_tiny: Callable[..., Path]) -> Path:
    return save_tiny(tokenizer_options={"levels": 2}, num_classes=2)


def test_the_grid(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path) -> None:
    paths = [photo(tmp_path / f"{name}.png", seed=seed) for seed, name in enumerate("abc")]
    target = tmp_path / "deep" / "correspondences.png"
    result = spit("correspond", *paths, "-o", target.parent, "--model", model, "--json")
    assert result.code == 0, result.err
    assert result.json.items() >= {"picture": str(target), "images": [str(path) for path in paths],
                                   "temperature": 0.01}.items()
    for row in result.json["colored"]:
        assert len(row) == 3
        assert all(0 <= share <= 1 for share in row)
    with Image.open(target) as picture:
        assert picture.width > 3 * 360
        assert picture.height > 4 * 300  # the images, and a row for each source
    first = target.read_bytes()
    assert "The picture is" in spit("correspond", *paths, "-o", target.parent, "--model", model).out
    assert target.read_bytes() == first


def test_every_image_has_its_column(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path) -> None:
    paths = [photo(tmp_path / "wide.png", 60, 40), photo(tmp_path / "tall.png", 40, 60, seed=1)]
    assert spit("correspond", *paths, "-o", tmp_path, "--model", model).code == 0
    pixels = np.asarray(Image.open(tmp_path / "correspondences.png"))[150:]
    taken = np.flatnonzero((pixels != 255).any(2).mean(0) > 0.5)  # columns of pixels that pictures take in every row
    assert taken[0] == MARGIN
    assert taken[np.flatnonzero(np.diff(taken) > 1)[0]] == MARGIN + 540 - 1


def test_refusals(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path) -> None:
    a, b = (photo(tmp_path / f"{name}.png", seed=seed) for seed, name in enumerate("ab"))
    weights = ("--model", model)
    assert "2 to 12 different images, got 1" in spit("correspond", a, *weights).error
    assert "expected a folder" in spit("correspond", a, b, "-o", a, *weights).error
    for ignored in (("--method", "head"), ("--token-head", "x"), ("--no-clean",)):
        assert f"No such option: {ignored[0]}" in spit("correspond", a, b, *ignored, *weights).error
    assert "from -1 to 0, got 4" in spit("correspond", a, b, "--layer", 4, *weights).error
    assert "above 0" in spit("correspond", a, b, "--softmax-temperature", 0, *weights).error
    taken = photo(tmp_path / "correspondences.png")
    before = taken.read_bytes()
    assert "would be overwritten" in spit("correspond", a, taken, "-o", tmp_path, *weights).error
    assert taken.read_bytes() == before
    assert "nowhere" in spit("correspond", a, tmp_path / "nowhere.png", *weights).error
