"""``spit segment``: files, going on, refusals."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import spit as library

Run = Callable[..., Any]


@pytest.fixture
def model(save_tiny: Callable[..., Path]) -> Path:
    return save_tiny(tokenizer_options={"levels": 2}, num_classes=0)


def test_files(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path,
               names: Callable[[Path], list[str]]) -> None:
    path = photo(tmp_path / "a.png")
    result = spit("segment", path, "-o", tmp_path / "out", "--model", model, "--json")
    assert result.code == 0, result.err
    kinds = ("cutout.png", "mask-overlay.png", "mask.png", "saliency.png", "segment.json")
    assert names(tmp_path / "out") == [f"a.{kind}" for kind in kinds]
    [document] = result.json["images"]
    assert json.loads((tmp_path / "out/a.segment.json").read_text()) == document
    image = library.load_image(path)
    found = library.segment(library.load_model(model), image)
    mask = found.mask[0].numpy()
    assert document["foreground"] == pytest.approx(mask.mean(), abs=1e-6)
    assert (document["model"], document["settings"]["question"]["foreground"]) == (model.name, "border")
    assert document["tau"] == float(found.tau[0])  # the image's own
    assert np.array_equal(np.array(Image.open(tmp_path / "out/a.mask.png")) == 255, mask)
    cutout = np.array(Image.open(tmp_path / "out/a.cutout.png"))
    assert np.array_equal(cutout[:, :, 3] == 255, mask)
    assert np.array_equal(cutout[:, :, :3], image.permute(1, 2, 0).numpy() * mask[:, :, None])  # and no more of it
    overlay = np.array(Image.open(tmp_path / "out/a.mask-overlay.png"))
    assert np.array_equal(overlay[mask], image.permute(1, 2, 0).numpy()[mask])
    soft = np.array(Image.open(tmp_path / "out/a.saliency.png"))
    assert np.abs(soft / 255 - found.saliency[0].numpy()).max() <= 0.5 / 255 + 1e-6


def test_reduced_images_are_counted(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path) -> None:
    photo(tmp_path / "in/small.png")
    base = ("segment", tmp_path / "in", "-o", tmp_path / "out", "--model", model, "--levels", 4)
    assert "was reduced" not in spit(*base).out
    photo(tmp_path / "in/a.png", 600, 500)
    result = spit(*base)
    assert result.code == 0, result.err
    assert "1 image was reduced to 262,144 pixels (as many as 512 × 512) for the model; --size SIDE" in result.out
    photo(tmp_path / "in/b.png", 600, 500, seed=1)
    result = spit("segment", tmp_path / "in/../in", *base[2:])  # one of them was done by the run before
    assert "2 images were reduced" in result.out
    assert "2 of 3 were done earlier" in result.out
    assert "2 images were reduced to 262,144 pixels (as many as 512 × 512) for the model" in spit(
        *base, "--again").out
    assert "were reduced" not in spit(*base, "--size", 64).out


def test_a_folder_goes_on(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path,
                          names: Callable[[Path], list[str]]) -> None:
    for index in range(2):
        photo(tmp_path / "in" / "deep" / f"{index}.png", seed=index)
    base = ("segment", tmp_path / "in", "-o", tmp_path / "out", "--model", model)
    first = spit(*base, "--json")
    assert len(names(tmp_path / "out" / "deep")) == 10
    for file in ("0.mask.png", "1.mask.png"):
        (tmp_path / "out/deep" / file).write_bytes(b"mine")
    (tmp_path / "out/deep/1.mask-overlay.png").unlink()  # this one is not whole, so it is done again
    second = spit(*base, "--json").json
    assert [item["key"] for item in second["images"]] == [item["key"] for item in first.json["images"]]
    assert (first.json["done_earlier"], second["done_earlier"]) == ([], [str(tmp_path / "in/deep/0.png")])
    assert (tmp_path / "out/deep/0.mask.png").read_bytes() == b"mine"
    assert (tmp_path / "out/deep/1.mask.png").read_bytes() != b"mine"
    assert "2 of 2 were done earlier" in spit(*base).out
    assert {item["tau"] for item in spit(*base, "--tau", 0.5, "--json").json["images"]} == {0.5}  # all anew
    assert (tmp_path / "out/deep/0.mask.png").read_bytes() != b"mine"
    assert "foreground" in spit(*base, "--again", "--foreground", "largest", "--cut-on", "keys", "--size", 24,
                                "--levels", 3).out


def test_a_folder_beside_its_photos(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path) -> None:
    """What a run wrote is no photo to the next one."""
    photo(tmp_path / "in/a.png")
    photo(tmp_path / "in/deep/b.png", seed=1)
    base = (tmp_path / "in", "-o", tmp_path / "in", "--json")
    for verb in (["segment", "--model", model], ["tokenize"]) * 2:
        assert [Path(item["image"]).name for item in spit(*verb, *base).json["images"]] == ["a.png", "b.png"]


def test_nothing_to_cut(spit: Run, model: Path, tmp_path: Path) -> None:
    Image.new("RGB", (9, 9), "red").save(tmp_path / "flat.png")
    assert "1 image without a foreground" in spit("segment", tmp_path / "flat.png", "-o", tmp_path / "out", "--model",
                                                model).out


def test_an_interrupt(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path,
                      monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spit.segmentation.saliency.segment_prediction", interrupt)
    result = spit("segment", photo(tmp_path / "a.png"), "-o", tmp_path / "out", "--model", model)
    assert (result.code, result.err) == (
        130, "spit: stopped; the same command continues with the remaining images\n")


@pytest.mark.parametrize(("options", "told"), [
    (["--tau", 2], "expected --tau of at most 1, got 2"),
    (["--cut-on", "values"], "--cut-on to be one of tokens, keys"),
    (["--foreground", "center"], "border, class_token, largest"),
    (["--layer", 7], "from -1 to 0, got 7"),
    (["--device", "gpu"], "cpu, cuda or auto"),
    (["--patch-size", 8], "belongs to --tokenizer patch"),
    (["--precision", "fp16", "--device", "cpu"], "fp16 is for a GPU; use fp32 or bf16 on a CPU"),
])
def test_refusals_write_nothing(options: list[object], told: str, spit: Run, photo: Callable[..., Path], model: Path,
                                tmp_path: Path) -> None:
    path = photo(tmp_path / "a.png")
    assert told in spit("segment", path, "-o", tmp_path / "out", "--model", model, *options).error
    assert not (tmp_path / "out").exists()


def test_a_bad_image_among_others(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path) -> None:
    photo(tmp_path / "in" / "a.png")
    (tmp_path / "in" / "b.png").write_text("no image")
    result = spit("segment", tmp_path / "in", "-o", tmp_path / "out", "--model", model, "--json")
    assert (result.code, len(result.json["images"]), len(result.json["failed"])) == (2, 1, 1)


def test_beside_what_tokenize_wrote(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path,
                                    names: Callable[[Path], list[str]]) -> None:
    path = photo(tmp_path / "a.png")
    assert spit("tokenize", path, "-o", tmp_path / "out").code == 0
    before = {name: (tmp_path / "out" / name).read_bytes() for name in names(tmp_path / "out")}
    result = spit("segment", path, "-o", tmp_path / "out", "--model", model)
    assert (result.code, result.err) == (0, "")
    assert len(names(tmp_path / "out")) == len(before) + 5
    assert {name: (tmp_path / "out" / name).read_bytes() for name in before} == before


def test_finished_work_is_keyed_by_content(spit: Run, photo: Callable[..., Path], model: Path, tmp_path: Path) -> None:
    """The same bytes under a new modification time are done; other bytes under the same name are not."""
    path = photo(tmp_path / "a.png")
    base = ("segment", path, "-o", tmp_path / "out", "--model", model, "--json")
    assert spit(*base).json["done_earlier"] == []
    os.utime(path, (1, 1))
    assert spit(*base).json["done_earlier"] == [str(path)]
    photo(path, seed=5)
    os.utime(path, (1, 1))
    assert spit(*base).json["done_earlier"] == []


def test_help(spit: Run) -> None:
    text = spit("segment", "--help").out
    for option in ("--tau", "--cut-on", "--foreground", "--device", "--json"):
        assert option in text
