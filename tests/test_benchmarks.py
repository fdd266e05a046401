"""The scripts of benchmarks/: missing data is one line and exit code 2, and figures are drawn into new folders."""

import runpy
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import torch
from PIL import Image

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem != "provenance")
# Photos of a wheel, made images, the project.
WITHOUT_DATA = {"attention", "attribution", "batch", "cliffs", "cpu", "explorer", "large", "limits", "newcomer",
                "serve"}
GIVEN = {"figures": ["masks"], "counters": ["--images", "nowhere"], "gpu": ["--images", "nowhere"],
         "phi": ["--images", "nowhere"], "scaling": ["--images", "nowhere"], "tau": ["--images", "nowhere"],
         "throughput": ["--images", "nowhere"],
         "imagenette": ["--photos", "nowhere", "--output", "made"],
         "photos": ["--output", "made"],
         "retrofit": ["--parent", "nowhere.pth", "--images", "nowhere", "--validation", "nowhere"]}
WORKING = """
from time import sleep
from provenance import launch
from spit.evaluation.superpixels.workers import open_workers

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
        try:
            runpy.run_path(str(BENCHMARKS / f"{script}.py"), run_name="__main__")
        except SystemExit as stop:
            return stop.code, capsys.readouterr().err
        return 0, capsys.readouterr().err

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


def test_without_the_default_folder_the_option_is_named(run: Run, monkeypatch: pytest.MonkeyPatch,
                                                        tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setattr(import_module("provenance"), "SHARED", tmp_path / "none")
    for script in ("superpixels", "counts", "deit"):
        assert run(script) == (2, f"{script}.py: expected data in {tmp_path / 'none'}, but no such folder exists; give "
                                  "--shared FOLDER (docs/data.md)\n")


def test_missing_weights_are_one_line(run: Run, tmp_path: Path) -> None:
    for folder in ("images", "masks"):
        (tmp_path / "data" / "ecssd" / folder).mkdir(parents=True)
        Image.new("L", (24, 24), 255).save(tmp_path / "data" / "ecssd" / folder / "a.png")
    code, told = run("saliency", "--shared", str(tmp_path))
    assert code == 2
    assert "no file" in told.strip().splitlines()[-1]


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


def test_kinds_of_images_are_timed(run: Run) -> None:
    pytest.importorskip("skimage")
    assert run("cliffs", "--size", "24", "--runs", "1")[0] == 0


def test_figures_go_into_a_new_folder(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert run("figures", "graph", "--output", "a/new/folder")[0] == 0
    with Image.open(tmp_path / "a/new/folder/graph.jpg") as picture:
        assert picture.width > 1500


def test_an_unknown_figure_is_named(run: Run) -> None:
    code, told = run("figures", "grph")
    assert code == 2
    assert "unknown picture 'grph'; expected demo, segmentation" in told


@pytest.mark.shared
def test_the_figures_from_data(run: Run, tmp_path: Path, shared_folder: Callable[[str], Path]) -> None:
    shared = shared_folder("data/ecssd").parents[1]
    assert run("figures", "masks", "counts", "--limit", "1", "--output", "made", "--shared", str(shared))[0] == 0
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["counts.png", "masks.jpg"]
