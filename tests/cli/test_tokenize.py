import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import spit as library
from spit.drawing import draw_mean_colors, draw_overlay, read_labels

Run = Callable[..., Any]


def test_an_exact_number_of_regions(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    path = photo(tmp_path / "cat.png")
    result = spit("tokenize", path, "-o", tmp_path / "out", "--regions", 37, "--json")
    [document] = result.json["images"]
    assert (document["regions"], document["tokenizer"], document["options"]) == (37, "superpixels", {"n": 37})
    expected = library.superpixels(library.load_image(path).movedim(0, -1).numpy(), 37, start_label=0)
    np.testing.assert_array_equal(read_labels(tmp_path / "out/cat.labels.png"), expected)
    assert "superpixels with n=37" in spit("tokenize", path, "-o", tmp_path / "out", "--regions", 37).out
    for more in (("--model", "spit_tiny_16"), ("--levels", 3)):
        assert "leave one out" in spit("tokenize", path, "-o", tmp_path / "out", "--regions", 37, *more).error


def test_tables_and_polygons(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    path = photo(tmp_path / "cat.png")
    options = ("--regions", 37, "--table", "--polygons", "--simplify", 2, "--json")
    [document] = spit("tokenize", path, "-o", tmp_path / "out", *options).json["images"]
    assert (document["files"]["table"], document["files"]["polygons"]) == ("cat.csv", "cat.geojson")
    labels, pixels = read_labels(tmp_path / "out/cat.labels.png"), library.load_image(path).movedim(0, -1).numpy()
    table = library.regions(labels, pixels, background=None)
    assert (tmp_path / "out/cat.csv").read_text() == table.to_csv()
    expected = library.polygons(labels, 2, background=None).to_geojson(table)
    assert json.loads((tmp_path / "out/cat.geojson").read_text()) == expected
    assert [feature["properties"]["label"] for feature in expected["features"]] == [*range(37)]


@pytest.mark.parametrize(("options", "tokenizer"), [
    ([], library.SuperpixelTokenizer()),
    (["--levels", 3, "--max-tokens", 20, "--features", "saturated"],
     library.SuperpixelTokenizer(levels=3, max_tokens=20, features="saturated")),
    (["--tokenizer", "patch", "--patch-size", 7], library.PatchTokenizer(7)),
    (["--tokenizer", "voronoi", "--cells", 9, "--seed", 4], library.VoronoiTokenizer(9, seed=4)),
])
@pytest.mark.parametrize("form", ["png", "npz"])
def test_files_and_json_are_the_librarys_answer(options: list[object], tokenizer: Any, form: str, spit: Run,
                                                photo: Callable[..., Path], tmp_path: Path) -> None:
    path = photo(tmp_path / "cat.png")
    result = spit("tokenize", path, "-o", tmp_path / "out", "--labels", form, "--json", *options)
    assert (result.code, result.err) == (0, "")
    image = library.load_image(path)
    partition = tokenizer(image)
    np.testing.assert_array_equal(read_labels(tmp_path / f"out/cat.labels.{form}"), partition.labels[0].numpy())
    for name, draw in (("overlay", draw_overlay), ("mean", draw_mean_colors)):
        with Image.open(tmp_path / f"out/cat.{name}.png") as written:
            np.testing.assert_array_equal(np.asarray(written), np.asarray(draw(image, partition)))
    [document] = result.json["images"]
    assert document == json.loads((tmp_path / "out/cat.json").read_text())
    assert (document["width"], document["height"]) == (48, 40)
    assert document["tokenizer"] in type(tokenizer).__name__.lower()
    assert document["options"] == tokenizer.config()
    sizes = partition.sizes()
    assert document["regions"] == len(sizes)
    assert document["region_size"] == {"min": sizes.min(), "mean": pytest.approx(48 * 40 / len(sizes)),
                                       "max": sizes.max()}
    if isinstance(tokenizer, library.SuperpixelTokenizer):
        assert document["regions_per_level"] == tokenizer.hierarchy(image).counts[1:, 0].tolist()
    else:
        assert document["regions_per_level"] is None


@pytest.mark.parametrize(("options", "tokenizer", "told"), [
    ([], library.SuperpixelTokenizer(levels=3, compactness=0.8), "superpixel with levels=3, compactness=0.8, from "),
    (["--levels", 2], library.SuperpixelTokenizer(levels=2, compactness=0.8), "with levels=2, compactness=0.8, from "),
    (["--tokenizer", "published"], library.create_tokenizer("published"), "Tokens: published, from "),
    (["--tokenizer", "patch"], library.PatchTokenizer(), "Tokens: patch, from "),
])
def test_the_tokens_of_a_model(options: list[object], tokenizer: Any, told: str, spit: Run, tmp_path: Path,
                               photo: Callable[..., Path], save_tiny: Callable[..., Path]) -> None:
    path, model = photo(tmp_path / "cat.png"), save_tiny(tokenizer_options={"levels": 3, "compactness": 0.8})
    result = spit("tokenize", path, "-o", tmp_path / "out", "--model", model, *options)
    assert result.code == 0
    assert told in result.out
    wanted = tokenizer(library.load_image(path)).labels[0].numpy()
    np.testing.assert_array_equal(read_labels(tmp_path / "out/cat.labels.png"), wanted)
    assert json.loads((tmp_path / "out/cat.json").read_text())["options"] == tokenizer.config()


def test_without_a_model_the_answer_says_so(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    result = spit("tokenize", photo(tmp_path / "cat.png"), "-o", tmp_path / "out")
    assert "Tokens: superpixel, without a model; --model NAME takes those of a model" in result.out
    refused = spit("tokenize", tmp_path / "cat.png", "-o", tmp_path / "out", "--model", "a,b")
    assert "expected one --model, got a,b" in refused.error


def test_more_regions_than_16_bits_hold(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    path = photo(tmp_path / "big.png", 300, 250)
    result = spit("tokenize", path, "-o", tmp_path, "--tokenizer", "patch", "--patch-size", 1, "--json")
    assert result.json["images"][0]["labels_encoding"] == "rgba32"
    np.testing.assert_array_equal(read_labels(tmp_path / "big.labels.png"), np.arange(75_000).reshape(250, 300))


def test_the_table_names_image_and_folder(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    path = photo(tmp_path / "[red]cat.png")
    result = spit("tokenize", path, "-o", tmp_path / "out")
    assert result.code == 0
    assert "[red]cat.png" in result.out, "no markup is read from names"
    assert str(tmp_path / "out") in result.out


def test_the_strip_of_levels(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    path = photo(tmp_path / "a.png")
    assert spit("tokenize", path, "-o", tmp_path / "out", "--levels-strip").code == 0
    with Image.open(tmp_path / "out/a.levels.png") as strip:
        assert strip.width > 4 * 300
    refused = spit("tokenize", path, "--tokenizer", "patch", "--levels-strip")
    assert "leave --tokenizer and --regions out" in refused.error


def test_a_folder_with_a_damaged_file(spit: Run, photo: Callable[..., Path], tmp_path: Path,
                                      names: Callable[[Path], list[str]]) -> None:
    photo(tmp_path / "in/a.png", seed=1)
    photo(tmp_path / "in/sub/a.jpg", seed=2)
    whole = photo(tmp_path / "whole.png").read_bytes()
    (tmp_path / "in/bad.png").write_bytes(whole[: len(whole) // 2])
    result = spit("tokenize", tmp_path / "in", "-o", tmp_path / "out", "--json")
    assert result.code == 2
    first, summary = result.err.splitlines()
    assert "bad.png" in first
    assert summary == "spit: 1 of 3 images failed"
    assert [item["image"] for item in result.json["images"]] == [str(tmp_path / "in/a.png"),
                                                                 str(tmp_path / "in/sub/a.jpg")]
    [failure] = result.json["failed"]
    assert failure["image"].endswith("bad.png")
    kinds = ("colors.png", "json", "labels.png", "mean.png", "overlay.png")
    assert names(tmp_path / "out") == [f"a.{kind}" for kind in kinds] + [f"sub/a.{kind}" for kind in kinds]


def test_running_again_replaces_and_does_not_eat_its_own_output(
        spit: Run, photo: Callable[..., Path], tmp_path: Path, names: Callable[[Path], list[str]]) -> None:
    photo(tmp_path / "a.png")
    for _ in range(2):
        assert len(spit("tokenize", tmp_path, "-o", tmp_path / "out", "--json").json["images"]) == 1
    assert len(names(tmp_path / "out")) == 5


def test_an_input_is_not_overwritten(spit: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    photo(tmp_path / "a.png")
    mine = photo(tmp_path / "a.mean.png", seed=3).read_bytes()
    assert spit("tokenize", tmp_path, "-o", tmp_path).code == 2
    assert (tmp_path / "a.mean.png").read_bytes() == mine


@pytest.mark.parametrize(("options", "told"), [
    (["--tokenizer", "superpixels"], "did you mean 'superpixel'"),
    (["--compactness", 3], "compactness of at most 1"),
    (["--features", "mine"], "paper, saturated"),
    (["--patch-size", 8], "--patch-size belongs to --tokenizer patch"),
    (["--labels", "tiff"], "one of png, npz"),
    (["--max-pixels", 100], "1,920"),
    (["--tokenizer", "voronoi", "--cells", 10_000], "do not fit"),
    (["--device", "gpu"], "cpu, cuda or auto"),
])
def test_refusals_write_nothing(options: list[object], told: str, spit: Run, photo: Callable[..., Path],
                                tmp_path: Path) -> None:
    path = photo(tmp_path / "a.png")
    assert told in spit("tokenize", path, "-o", tmp_path / "out", *options).error
    assert not (tmp_path / "out").exists()


def test_a_process_prints_json_alone(spit_process: Run, photo: Callable[..., Path], tmp_path: Path) -> None:
    paths = [photo(tmp_path / f"{name}.png", seed=seed) for seed, name in enumerate("ab")]
    result = spit_process("tokenize", *paths, "-o", tmp_path / "out", "--json")
    assert result.code == 0, result.err
    assert [item["image"] for item in result.json["images"]] == [str(path) for path in paths]
