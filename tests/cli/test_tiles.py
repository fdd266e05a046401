"""``spit tokenize --tiles``, and the files that it and plain ``spit tokenize`` write."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spit as library

Run = Callable[..., Any]


@pytest.fixture
def image() -> Any:
    return np.random.default_rng(0).integers(0, 4000, (5, 130, 140)).astype(np.uint16)


def test_an_array_by_tiles(spit: Run, image: Any, tmp_path: Path, names: Callable[[Path], list[str]]) -> None:
    np.save(tmp_path / "a.npy", image)
    asked = ("tokenize", tmp_path / "a.npy", "-o", tmp_path / "out", "--regions", 70, "--axes", "CYX", "--json")
    result = spit(*asked, "--tiles", 64)
    [document] = result.json["images"]
    expected = library.superpixels(image, 70, refine=0, channel_axis=0)
    np.testing.assert_array_equal(np.load(tmp_path / "out/a.labels.npy"), expected)
    assert names(tmp_path / "out") == ["a.json", "a.labels.npy"]
    assert document == json.loads((tmp_path / "out/a.json").read_text())
    sizes = np.bincount(expected.ravel())[1:]
    assert document["files"] == {"labels": "a.labels.npy"}
    assert (document["width"], document["height"], document["regions"]) == (140, 130, 70)
    assert document["region_size"] == {"min": sizes.min(), "mean": pytest.approx(130 * 140 / 70), "max": sizes.max()}
    again = spit(*asked, "--tiles", 128)
    assert again.json["done_earlier"] == [str(tmp_path / "a.npy")], "the size of tiles changes nothing"
    assert "a.npy" in spit(*asked[:-1], "--tiles", 64, "--again").out


def test_a_stopped_command_is_resumed(spit: Run, image: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spit.tiles import run

    np.save(tmp_path / "a.npy", image)
    asked = ("tokenize", tmp_path / "a.npy", "-o", tmp_path / "out", "--regions", 70, "--axes", "CYX", "--tiles", 64)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "number_regions", stop)
        assert "the same command continues" in spit(*asked).err
    parts = tmp_path / "out/a.labels.npy.parts"
    assert len([*parts.iterdir()]) == 9
    assert spit(*asked).code == 0
    assert not parts.exists()
    np.testing.assert_array_equal(np.load(tmp_path / "out/a.labels.npy"),
                                  library.superpixels(image, 70, refine=0, channel_axis=0))


def test_pages_of_a_tiff(spit: Run, image: Any, tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    pytest.importorskip("zarr")
    tifffile.imwrite(tmp_path / "a.tif", image, photometric="minisblack")
    asked = ("tokenize", tmp_path / "a.tif", "-o", tmp_path / "out", "--regions", 70, "--tiles", 64)
    assert "give axes CYX" in spit(*asked).error
    for axes, axis in (("CYX", 0), ("ZYX", None)):
        assert spit(*asked, "--axes", axes).code == 0
        np.testing.assert_array_equal(tifffile.imread(tmp_path / "out/a.labels.tif"),
                                      library.superpixels(image, 70, refine=0, channel_axis=axis))


def test_an_array_is_not_overwritten(spit: Run, image: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", image)
    np.save(tmp_path / "a.labels.npy", image)
    result = spit("tokenize", tmp_path / "a.npy", tmp_path / "a.labels.npy", "-o", tmp_path, "--regions", 70, "--axes",
                  "CYX", "--tiles", 64)
    assert "would be overwritten" in result.err
    np.testing.assert_array_equal(np.load(tmp_path / "a.labels.npy"), image)


@pytest.mark.parametrize(("kinds", "ends"), [
    ("labels", ["labels.png"]), ("table,overlay", ["csv", "overlay.png"]), ("polygons", ["geojson"]),
    ("levels,colors,mean", ["colors.png", "levels.png", "mean.png"]),
])
def test_only_the_files_that_were_asked_for(kinds: str, ends: list[str], spit: Run, photo: Callable[..., Path],
                                            tmp_path: Path, names: Callable[[Path], list[str]]) -> None:
    asked = ("tokenize", photo(tmp_path / "a.png"), "-o", tmp_path / "out", "--files", kinds)
    assert spit(*asked).code == 0
    assert names(tmp_path / "out") == sorted(f"a.{end}" for end in [*ends, "json"])
    [document] = spit(*asked, "--json").json["done_earlier"]
    assert document == str(tmp_path / "a.png")


@pytest.mark.parametrize(("name", "options", "told"), [
    ("a.npy", ["--regions", 70], "a.npy: arrays are read with --tiles; give --tiles 2048 --regions 70"),
    ("a.png", ["--axes", "CYX"], "--axes goes with --tiles"),
    ("a.npy", ["--tiles", 64], "give --regions 600"),
    ("a.npy", ["--tiles", 64, "--regions", 70, "--files", "labels,table"], "writes labels alone, got --files table"),
    ("a.npy", ["--tiles", 64, "--regions", 70, "--polygons"], "writes labels alone, got --files polygons"),
    ("a.npy", ["--tiles", 64, "--regions", 70], "give channel_axis=0 for an image of 5 bands"),
    ("a.png", ["--tiles", 64, "--regions", 70], "expected .npy, .tif, .tiff, .zarr, got .png"),
    ("a.png", ["--files", "label"], "did you mean 'labels'"),
    ("a.png", ["--files", "levels", "--tokenizer", "patch"], "levels of superpixels"),
])
def test_refusals_write_nothing(name: str, options: list[object], told: str, image: Any, spit: Run,
                                photo: Callable[..., Path], tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", image)
    photo(tmp_path / "a.png")
    assert told in spit("tokenize", tmp_path / name, "-o", tmp_path / "out", *options).error
    assert not (tmp_path / "out").exists()
