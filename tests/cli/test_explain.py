import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import spit as library
from spit.attribution import fit_prototypes
from spit.config import ModelConfig
from spit.data.crops import central_square
from spit.drawing import draw_panel
from spit.model import SpitModel

Run = Callable[..., Any]
SHARED = Path(__file__).parents[3] / "shared"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = ModelConfig(tokenizer_options={"levels": 3}, resolution=4, position_bins=4, gradients=False, width=32,
                         depth=2, heads=2, num_classes=7)
    model = SpitModel(config)
    torch.nn.init.normal_(model.head.linear.weight)
    return library.save_model(model, tmp_path / "model")


def test_everything_about_an_image(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path,
                                   names: Callable[[Path], list[str]]) -> None:
    path, out = photo(tmp_path / "cat.png"), tmp_path / "out"
    own = library.load_model(folder).eval()
    square = central_square(library.load_image(path), 32)
    file = fit_prototypes(own, square[None]).save(tmp_path / "own.safetensors")
    arguments = ("explain", path, "--model", folder, "--size", 32, "--samples", 8, "-o", out)
    result = spit(*arguments, "--prototypes", file, "--top", 3, "--json")
    assert result.code == 0, result.err
    assert names(out) == ["cat.explain.json", "cat.explain.png", "cat.flow.npy", "cat.occlusion.png",
                          "cat.prototype.npy", "cat.relevance.npy"]
    [document] = result.json["images"]
    assert json.loads((out / "cat.explain.json").read_text()) == document
    [about] = document["models"]
    assert len(about["top"]) == 3
    assert about["target"] == about["top"][0]
    assert (about["of_class"], about["left_out"]) == (["relevance", "prototype"], {})
    flow = np.load(out / about["maps"]["flow"], allow_pickle=False)
    assert flow.dtype == np.float32
    np.testing.assert_allclose(flow, library.explain(own, square, "flow")[0].numpy(), rtol=1e-5)
    with Image.open(out / "cat.explain.png") as panel:
        assert panel.width > 3 * 360
        assert panel.height > 2 * 360


def test_the_whole_image(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path) -> None:
    path, out = photo(tmp_path / "cat.png"), tmp_path / "out"
    base = ("explain", path, "--model", folder, "--method", "flow", "--whole", "-o", out)
    image = library.load_image(path)
    predictor = library.Predictor(library.load_model(folder).eval())
    for size in (None, 32):
        result = spit(*base, "--json", *(() if size is None else ("--size", size)))
        assert result.code == 0, result.err
        [document] = result.json["images"]
        [about] = document["models"]
        assert (document["size"], about["seen"]) == (None, [48, 40] if size is None else [38, 32])
        wanted = predictor(image, crop=False, size=size)
        found = np.load(out / about["maps"]["flow"], allow_pickle=False)
        np.testing.assert_allclose(found, wanted.explain("flow")[0].numpy(), rtol=1e-5)
        assert about["tokens"] == int(wanted.partition.counts[0])
    assert "expected --size of at most 467, 512 × 512 pixels of this image, got 600" in spit(*base, "--size", 600).error


def test_a_large_whole_image_is_seen_smaller(spit: Run, photo: Callable[..., Path], folder: Path,
                                             tmp_path: Path) -> None:
    path, out = photo(tmp_path / "cat.png", 900, 500), tmp_path / "out"
    result = spit("explain", path, "--model", folder, "--method", "flow", "--whole", "-o", out, "--json")
    assert result.code == 0, result.err
    [about] = result.json["images"][0]["models"]
    assert about["seen"] == [686, 381]
    assert np.load(out / about["maps"]["flow"], allow_pickle=False).shape == (500, 900)


def test_panels_say_what_depends_on_the_class(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    path = photo(tmp_path / "cat.png")
    told: list[list[tuple[str, str]]] = []
    file = fit_prototypes(library.load_model(folder).eval(), torch.rand(2, 3, 32, 32)).save(
        tmp_path / "own.safetensors")

    def drawn(rows: Any, *rest: Any) -> Image.Image:
        told.append([(tile.caption, tile.detail) for tile in rows[0]])
        return draw_panel(rows, *rest)

    monkeypatch.setattr("spit.cli.work.explain.draw_panel", drawn)
    for form in ("class", "paper"):
        result = spit("explain", path, "--model", folder, "--size", 32, "--method", "prototype", "--prototypes", file,
                      "--prototype-form", form, "-o", tmp_path / "out")
        assert result.code == 0, result.err
        assert "(central square, " in result.out
        assert f"4 files for each image are in {tmp_path / 'out'}: panel, occlusions, maps (NPY) and" in result.out
    seen = told[0][0][1].partition(",")[0]
    assert (seen[:6], told[0][0][0]) == ("class ", "cat.png")
    assert [panel[2] for panel in told[::2]] == [("Prototypes", seen), ("Prototype PCA", "hardly depends on the class")]


def test_targets_models_and_tokenizers(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path,
                                       names: Callable[[Path], list[str]]) -> None:
    path, out = photo(tmp_path / "cat.png"), tmp_path / "out"
    other = library.save_model(library.load_model(folder), tmp_path / "other")
    result = spit("explain", path, "--model", folder, "--model", other, "--tokenizer", "patch", "--patch-size", 8,
                  "--method", "relevance", "--target", 4, "--size", 32, "-o", out, "--json")
    assert [part["target"]["index"] for part in result.json["images"][0]["models"]] == [4, 4]
    assert [part["tokens"] for part in result.json["images"][0]["models"]] == [16, 16]
    assert f"cat.{folder.parent.name}.relevance.npy" in names(out)
    assert "cat.other.relevance.npy" in names(out)


def test_the_models_own_names_and_size(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path) -> None:
    model = library.load_model(folder)
    model.config = model.config.replace(class_names=tuple("abcdefg"), eval_size=32)
    own = library.save_model(model, tmp_path / "own")
    base = ("explain", photo(tmp_path / "cat.png"), "--model", own, "--method", "flow", "-o", tmp_path / "out")
    [document] = spit(*base, "--target", "C", "--json").json["images"]
    assert (document["size"], document["models"][0]["target"]["index"]) == (32, 2)
    assert "from 0 to 6 or its name, got 'class 2'" in spit(*base, "--target", "class 2").error
    assert "expected target as a class from 0 to 6 or its name, got '7'" in spit(*base, "--target", 7).error
    model.config = model.config.replace(eval_size=40)
    other = library.save_model(model, tmp_path / "other")
    assert "got own 32, other 40; give --size" in spit(*base, "--model", other).error


def test_in_words_and_in_folders(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path) -> None:
    photo(tmp_path / "in/a.png")
    photo(tmp_path / "in/below/b.png", seed=1)
    (tmp_path / "in/bad.png").write_text("no image")
    result = spit("explain", tmp_path / "in", "--model", folder, "--method", "flow", "--size", 32, "-o",
                  tmp_path / "out")
    assert result.code == 2
    assert "tokens): flow: the same for any class\n" in result.out
    assert "explains" not in result.out
    assert "1 of 3 images failed" in result.err
    assert (tmp_path / "out/below/b.explain.png").is_file()


def test_an_unlikely_class_is_said_to_be_so(spit: Run, photo: Callable[..., Path], folder: Path,
                                            tmp_path: Path) -> None:
    command = ("explain", photo(tmp_path / "cat.png"), "--model", folder, "--method", "relevance", "--size", 32, "-o",
               tmp_path / "out")
    assert "is unlikely:" not in spit(*command).out  # the predicted class
    assert "class 4 is unlikely: the map compares pixels" in spit(*command, "--target", 4).out


def test_what_cannot_be_had_is_left_out_and_said(spit: Run, photo: Callable[..., Path], folder: Path,
                                                 tmp_path: Path) -> None:
    base = ("explain", photo(tmp_path / "cat.png"), "--model", folder, "--size", 32, "--samples", 8, "-o",
            tmp_path / "out")
    result = spit(*base)
    assert (result.code, result.err) == (0, "")
    assert "explains class " in result.out
    [line] = [line for line in result.out.splitlines() if "left out" in line]
    assert line.startswith(f"{folder.parent.name}: prototype is left out; no prototypes")
    assert "spit.attribution.fit_prototypes" in line
    assert "--prototypes FILE" in line
    [about] = spit(*base, "--json").json["images"][0]["models"]
    assert list(about["maps"]) == ["relevance", "flow"]
    assert list(about["left_out"]) == ["prototype"]


def test_the_default_panel_says_which_map_is_best(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []

    def spy(rows: Any, title: str = "", note: str = "") -> Image.Image:
        notes.append(note)
        return draw_panel(rows, title, note)

    monkeypatch.setattr("spit.cli.work.explain.draw_panel", spy)
    command = ("explain", photo(tmp_path / "a.png"), "--model", folder, "--size", 32, "-o", tmp_path / "out")
    assert spit(*command).code == spit(*command, "--method", "flow").code == 0
    assert notes[0].startswith("On average relevance is the most faithful of the fast methods; ")
    assert notes[2] == ""


def test_every_step_is_said(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path,
                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spit.cli.console.PATIENCE", 0)
    for name in "ab":
        photo(tmp_path / f"in/{name}.png")
    result = spit("explain", tmp_path / "in", "--model", folder, "--size", 32, "--samples", 40, "-o",
                  tmp_path / "out", "--method", "flow,lime,token_rise")
    steps = ("cutting it into tokens (the first run compiles)", "map by flow", "map by lime",
             "map by lime, 32 passes of at most 40", "map by lime, 40 passes of at most 40",
             "map by token_rise", *(f"map by token_rise, {done} passes of at most 40" for done in (15, 30)),
             "drawing, with occlusions")
    begun = ["spit: Explaining, 0 of 2", f"spit: Explaining a.png: {steps[-1]}, 1 of 2"]
    assert result.err.splitlines() == [line for count, name in enumerate("ab") for line in (
        begun[count], *(f"spit: Explaining {name}.png: {step}, {count} of 2" for step in steps))]


def test_bad_input_is_one_line(spit: Run, photo: Callable[..., Path], folder: Path, tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    path = photo(tmp_path / "cat.png")
    monkeypatch.setattr("spit.registry.CHECKPOINTS", tmp_path / "none")
    base = ("explain", path, "--model", folder, "-o", tmp_path / "out")
    for arguments, told in (
        (("--method", "flwo"), "did you mean 'flow'"),
        (("--method", "gradcam"), "flow, rollout, random, got 'gradcam'\n"),
        (("--target", "7"), "from 0 to 6"),
        (("--target", "clas 3"), "did you mean 'class 3'"),
        (("--target", "class"), "did you mean 'class 0' or 'class 1' or"),
        (("--method", "flow", "--method", "prototype"), "give them with --prototypes FILE"),
        (("--model", folder), "expected each --model once, got one twice"),
        (("--tokenizer", "cubes"), "cubes"),
    ):
        assert told in spit(*base, *arguments).error, arguments
    assert "no trained weights of spit_tiny_16" in spit("explain", path).error
    assert not (tmp_path / "out").exists()


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared")
def test_imagenets_names_are_targets(spit: Run, tmp_path: Path) -> None:
    skimage = pytest.importorskip("skimage")
    cat = Path(skimage.__file__).parent / "data" / "chelsea.png"
    base = ("explain", cat, "--model", SHARED / "weights" / "deit_tiny_patch16_224.safetensors", "--method", "flow",
            "-o", tmp_path)
    [part] = spit(*base, "--target", "Tabby", "--json").json["images"][0]["models"]
    assert part["target"]["index"] == 281
    assert "did you mean 'crane (bird)' or 'crane (machine)'" in spit(*base, "--target", "crane").error
    refused = spit(*base, "--target", "kitty").error
    assert "got 'kitty'" in refused


def test_one_look_serves_every_method(spit: Run, photo: Callable[..., Path], tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture is tokenized once and passes for its classes, recorded and with gradients; the rest is occluded."""
    path, tokenize, encode = photo(tmp_path / "cat.png"), SpitModel.tokenize, SpitModel.encode
    square = central_square(library.load_image(path), 64).float() / 255
    looks: list[list[bool]] = []
    passes: list[bool] = []

    def counted_tokenize(model: SpitModel, images: Any) -> Any:
        looks.append([bool(torch.equal(image.float() / (255 if image.dtype == torch.uint8 else 1), square))
                      for image in images])
        return tokenize(model, images)

    def counted_encode(model: SpitModel, *arguments: Any, **options: Any) -> Any:
        passes.append(torch.is_grad_enabled())
        return encode(model, *arguments, **options)

    monkeypatch.setattr(SpitModel, "tokenize", counted_tokenize)
    monkeypatch.setattr(SpitModel, "encode", counted_encode)
    result = spit("explain", path, "--method", "flow,prototype,relevance", "--size", 64, "-o", tmp_path / "out",
                  "--device", "cpu")
    assert result.code == 0, result.err
    assert looks == [[True], [False] * 4, [False] * 4]  # the picture, then four without and four with its top pixels
    assert (passes.count(True), passes.count(False)) == (1, 2 + 8)
