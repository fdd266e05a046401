"""The scripts of benchmarks/: missing data is one line and exit code 2, and figures are drawn into new folders."""

import json
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image

import spit
from spit.evaluation.classification import AnswerCase
from spit.evaluation.samples import LabelledFolder, labelled_folder

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem != "provenance")
# Photos of a wheel, made images, the project.
WITHOUT_DATA = {"attention", "attribution", "backbones", "batch", "cliffs", "cpu", "explorer", "kinds", "large",
                "limits", "newcomer", "serve", "threads", "tiled", "video", "volumes"}
GIVEN = {"figures": ["masks"], "counters": ["--images", "nowhere"], "gpu": ["--images", "nowhere"],
         "phi": ["--images", "nowhere"], "scaling": ["--images", "nowhere"], "tau": ["--images", "nowhere"],
         "throughput": ["--images", "nowhere"], "latency": ["--images", "nowhere"], "peers": ["--images", "nowhere"],
         "table": ["B1", "--data", "nowhere"], "versions": ["--other", "nowhere"],
         "imagenette": ["--photos", "nowhere", "--output", "made"],
         "photos": ["--output", "made"],
         "retrofit": ["--parent", "nowhere.pth", "--images", "nowhere", "--validation", "nowhere"]}
WORKING = """
from time import sleep
from provenance import launch
from comparison.workers import open_workers

def main():
    with open_workers(1) as workers:
        for _ in workers(sleep, [0.05] * 2000):
            print("at work", flush=True)

if __name__ == "__main__":
    launch(main)
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs a script in this process, in an empty folder; its exit code and what it wrote on stderr."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.chdir(tmp_path)

    def start(script: str, *arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", [f"{script}.py", *arguments])
        start.out = ""  # type: ignore[attr-defined]
        try:
            runpy.run_path(str(BENCHMARKS / f"{script}.py"), run_name="__main__")
        except SystemExit as stop:
            return stop.code, capsys.readouterr().err
        start.out, told = capsys.readouterr()  # type: ignore[attr-defined]
        return 0, told

    return start


@pytest.mark.parametrize("script", [name for name in SCRIPTS if name not in WITHOUT_DATA])
def test_missing_data_is_one_line(script: str, run: Run) -> None:
    if script == "speed":
        pytest.importorskip("cv2")
    code, told = run(script, "--shared", "nowhere", *GIVEN.get(script, []))
    assert code == 2
    last = told.strip().splitlines()[-1]
    assert last.startswith(f"{script}.py: "), told
    assert "nowhere" in last or (script == "gpu" and not torch.cuda.is_available())
    assert "Traceback" not in told


def test_every_script_is_launched() -> None:
    for script in SCRIPTS:
        text = (BENCHMARKS / f"{script}.py").read_text()
        assert text.endswith('if __name__ == "__main__":\n    launch(main)\n'), script


def test_a_stopped_script_says_so_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "working.py"
    script.write_text(WORKING)
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS), prepend=":")
    with subprocess.Popen([sys.executable, str(script)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        process.send_signal(signal.SIGTERM)
        told = process.communicate(timeout=60)[1]
    assert (process.returncode, told) == (130, "working.py: stopped\n")


@pytest.mark.parametrize(("script", "options"), [("peers", ["--no-training"]), ("latency", ["--calls", "5"])])
def test_timm_stands_beside_and_sees_as_many_images(script: str, options: list[str], run: Run,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []

    class Peer(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            seen.append(tuple(images.shape))
            return images.mean((2, 3))

    timm = ModuleType("timm")
    timm.__version__ = "0"  # type: ignore[attr-defined]
    timm.create_model = lambda name, **options: Peer()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", timm)
    assert run(script, "--size", "32", "--batch", "2", "--device", "cpu", *options) == (0, "")
    assert set(seen) == {(2, 3, 32, 32)}
    assert "timm 0 vit_tiny_patch16_224" in run.out  # type: ignore[attr-defined]
    ratios = [line.split("|")[-2] for line in run.out.splitlines() if line.startswith("|")]  # type: ignore[attr-defined]
    assert any(ratio.strip().replace(".", "").isdigit() for ratio in ratios)


def test_the_labels_of_videos_stay(run: Run) -> None:
    assert run("video", "--frames", "3") == (0, "")
    rows = [(line[:16].strip(), *map(float, line[16:].split())) for line in run.out.splitlines()[-8:]]  # type: ignore[attr-defined]
    for name, kept, alone, explained, explained_alone, first, _ in rows:
        assert kept > alone, name
        assert kept >= 0.95 or name.startswith("zoom")
        assert explained >= max(explained_alone - 0.01, first - 0.0001), name


def test_figures_go_into_a_new_folder(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert run("figures", "graph", "--output", "a/new/folder")[0] == 0
    with Image.open(tmp_path / "a/new/folder/graph.jpg") as picture:
        assert picture.width > 1500


@pytest.mark.shared
def test_the_figures_from_data(run: Run, tmp_path: Path, shared_folder: Callable[[str], Path]) -> None:
    shared = shared_folder("data/ecssd").parents[1]
    assert run("figures", "masks", "counts", "--limit", "1", "--output", "made", "--shared", str(shared))[0] == 0
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["counts.png", "masks.jpg"]


@pytest.fixture
def segmented(photo: Callable[[str, int], torch.Tensor], tmp_path: Path) -> Path:
    """Two photos of 48 × 48 with two label maps each."""
    for name in ("chelsea", "coffee"):
        picture = photo(name, 48).movedim(0, -1).numpy()
        for folder in ("images", "labels"):
            (tmp_path / "data" / folder).mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(tmp_path / "data" / "images" / f"{name}.png")
        for human, limit in enumerate((90, 140), start=1):
            np.save(tmp_path / "data" / "labels" / f"{name}_{human}.npy", (picture.mean(2) > limit).astype(np.uint8))
    return tmp_path / "data"


def test_superpixel_methods_are_compared_at_equal_counts(run: Run, segmented: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    options = ("--data", str(segmented), "--algorithm", "slic,spit", "--count", "40", "--count", "20", "--workers", "0",
               "--output", str(tmp_path / "out"))
    assert run("superpixels", *options)[0] == 0
    rows = json.loads((tmp_path / "out/results.json").read_text())["rows"]
    assert [(row["method"], row["wanted"]) for row in rows] == [("slic", 20), ("slic", 40), ("spit", 20), ("spit", 40)]
    assert [row["regions"] for row in rows[2:]] == [20, 40]
    assert all(row["images"] == 2 and 0 < row["explained_variation"] < 1 for row in rows)
    assert {"curves.png", "images.jsonl"} < {path.name for path in (tmp_path / "out").iterdir()}
    lines = (tmp_path / "out/images.jsonl").read_text()
    assert run("superpixels", *options)[0] == 0
    assert (tmp_path / "out/images.jsonl").read_text() == lines  # nothing is measured again


def test_what_superpixels_cannot_be_compared_on_is_one_line(run: Run, segmented: Path) -> None:
    base = ("superpixels", "--data", str(segmented), "--workers", "0")
    code, told = run(*base, "--count", "99999999")
    assert code == 2
    assert "at most 144" in told.splitlines()[-1]
    assert "did you mean 'seeds'" in run(*base, "--algorithm", "seed")[1]
    (segmented / "labels" / "coffee_1.npy").write_bytes(b"damaged")
    assert "coffee_1.npy: expected a label map" in run(*base)[1]


def test_superpixels_of_drawn_images_stand_beside_slic(run: Run) -> None:
    assert run("kinds", "--kind", "flat,quadrants", "--runs", "1")[0] == 0
    lines = run.out.splitlines()  # type: ignore[attr-defined]
    assert sum(line.startswith(("flat: ", "quadrants: ")) for line in lines) == 18
    assert "held      squared error at most 1.1 × SLIC's: 18 of 18" in lines
    assert run("kinds", "--kind", "photo")[0] == 2


def test_volumes_stand_beside_slic(run: Run) -> None:
    assert run("volumes", "--side", "48", "--count", "30", "--runs", "1")[0] == 0
    assert "held      better recall than slic" in run.out  # type: ignore[attr-defined]
    assert "held      exactly n, connected: " in run.out  # type: ignore[attr-defined]


@pytest.fixture
def labelled(photo: Callable[[str, int], torch.Tensor], tmp_path: Path) -> Path:
    """Two classes of two photos of 48 × 48."""
    for label, names in enumerate((("chelsea", "coffee"), ("astronaut", "rocket"))):
        (tmp_path / "labelled" / str(label)).mkdir(parents=True)
        for name in names:
            Image.fromarray(photo(name, 48).movedim(0, -1).numpy()).save(
                tmp_path / "labelled" / str(label) / f"{name}.png")
    return tmp_path / "labelled"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = spit.ModelConfig(resolution=4, position_bins=4, gradients=False, width=32, depth=1, heads=2,
                              layer_scale=None, num_classes=2)
    return spit.save_model(spit.SpitModel(config), tmp_path / "tiny")


@pytest.mark.parametrize(("table", "options", "rows"), [
    ("1", [], 1), ("1", ["--train"], 1), ("2", ["--method", "flow", "--method", "random"], 2), ("4", [], 3),
    ("B1", [], 4), ("B2", [], 6)])
def test_a_table_of_the_paper(run: Run, table: str, options: list[str], rows: int, labelled: Path, tiny: Path,
                              tmp_path: Path) -> None:
    given = [*options, str(labelled)] if options == ["--train"] else options
    assert run("table", table, "--data", str(labelled), "--model", str(tiny), "--size", "32", "--device", "cpu",
               "--output", str(tmp_path / "out"), *given)[0] == 0
    document = json.loads((tmp_path / "out/results.json").read_text())
    assert len(document["rows"]) == rows
    assert document["images"] == 4
    if table == "2":
        assert document["options"][0]["skip"] == 0


def test_table_3_is_cut_as_in_the_appendix(run: Run, segmented: Path, tiny: Path, tmp_path: Path) -> None:
    (segmented / "masks").mkdir()
    for name in ("chelsea", "coffee"):
        Image.fromarray(np.eye(48, dtype=np.uint8) * 255).save(segmented / "masks" / f"{name}.png")
    assert run("table", "3", "--data", str(segmented), "--model", str(tiny), "--output", str(tmp_path / "out"))[0] == 0
    [row] = json.loads((tmp_path / "out/results.json").read_text())["rows"]
    assert {key: row["cut"][key] for key in ("tau", "cut_on", "foreground", "clean", "merge")} == {
        "tau": 1 / 3, "cut_on": "tokens", "foreground": "class_token", "clean": False, "merge": False}


def test_squares_as_in_the_paper(monkeypatch: pytest.MonkeyPatch, labelled: Path, tiny: Path) -> None:
    """ImageNet at the size of the last training, with the model's crop; other images whole at 256²."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    squares = import_module("tables.protocols").squares
    folder, model = labelled_folder(labelled), spit.load(tiny, "cpu", 32)
    model.model.config = model.model.config.replace(train_size=24, eval_size=40)
    other = squares(model, folder)
    assert (other.size, other.model.config.eval_crop) == (256, None)
    assert (model.size, model.model.config.eval_crop) == (32, 0.875)
    assert squares(model, folder, 48).size == 48
    known = squares(model, LabelledFolder(folder.root, ("n01440764", "n01443537"), folder.images))
    assert (known.size, known.model.config.eval_crop) == (24, 0.875)
    square = AnswerCase(squares(model, folder, 20)).read(folder.images[0])
    whole = Image.open(folder.images[0].image).convert("RGB").resize((20, 20), Image.Resampling.BICUBIC)
    assert np.array_equal(square.movedim(0, -1).numpy(), np.array(whole))
