"""``--workers``: several processes do each image once, and the answers are those of one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

COUNT = 8
VERBS = [("tokenize", "json", []), ("segment", "segment.json", ["--size", "64"]),
         ("explain", "explain.json", ["--size", "64", "--method", "flow"])]


@pytest.fixture
def images(tmp_path: Path, photo: Callable[..., Path]) -> Path:
    for index in range(COUNT):
        photo(tmp_path / f"in/{index}.png", 160, 120, index)
    (tmp_path / "in/broken.png").write_bytes(b"no image")
    return tmp_path / "in"


def stamps(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in folder.iterdir()}


@pytest.mark.parametrize(("verb", "about", "options"), VERBS)
def test_answers_are_those_of_one_process(verb: str, about: str, options: list[str], images: Path, tmp_path: Path,
                                          spit: Callable[..., Any]) -> None:
    found = []
    for workers in (1, 3):
        output = tmp_path / str(workers)
        result = spit(verb, images, "-o", output, "--device", "cpu", "--workers", workers, *options, "--json")
        assert result.code == 2, "one image is broken"
        assert "1 of 9 images failed" in result.err
        document = result.json
        assert len(document["images"]) == COUNT
        assert not document.get("done_earlier")
        found.append((document["images"], sorted(path.name for path in output.iterdir())))
    assert found[0] == found[1]


def test_each_image_is_done_once(images: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    run = subprocess.Popen([sys.executable, "-m", "spit.cli", "explain", str(images), "-o", str(output), "--device",
                            "cpu", "--workers", "2", "--json"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seen: dict[str, int] = {}
    while run.poll() is None:
        for path in tmp_path.glob("out/*.explain.json"):
            inode = seen.setdefault(path.name, path.stat().st_ino)
            assert inode == path.stat().st_ino, "a document was written twice"
        time.sleep(0.001)
    out, told = run.communicate()
    assert run.returncode == 2, told
    assert len(json.loads(out)["images"]) == len(seen) == COUNT
    assert not [path for path in output.iterdir() if path.name.startswith(".")]


def test_a_companion_that_dies_leaves_its_work_to_the_others(images: Path, tmp_path: Path) -> None:
    run = subprocess.Popen([sys.executable, "-m", "spit.cli", "segment", str(images), "-o", str(tmp_path / "out"),
                            "--device", "cpu", "--workers", "2", "--json"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    while not (children := [one for one in psutil.Process(run.pid).children() if "spit.cli" in one.cmdline()]):
        assert run.poll() is None
        time.sleep(0.005)
    children[0].kill()
    out, told = run.communicate(timeout=240)
    assert run.returncode == 2, told
    assert len(json.loads(out)["images"]) == COUNT
    assert "Traceback" not in told


def test_companions_end_with_their_starter(images: Path, tmp_path: Path) -> None:
    run = subprocess.Popen([sys.executable, "-m", "spit.cli", "explain", str(images), "-o", str(tmp_path / "out"),
                            "--device", "cpu", "--workers", "2", "--method", "lime", "--samples", "3000"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list(tmp_path.glob("out/.spit-claim-*"))) < 2:  # both are at work
        assert run.poll() is None
        time.sleep(0.01)
    children = [one for one in psutil.Process(run.pid).children() if "spit.cli" in one.cmdline()]
    assert children
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert not psutil.wait_procs(children, timeout=60)[1]


def test_a_second_run_replaces_or_skips(images: Path, tmp_path: Path, spit: Callable[..., Any]) -> None:
    (images / "broken.png").unlink()
    for verb, again in (("tokenize", True), ("segment", False)):
        output = tmp_path / verb
        runs = []
        for _ in range(2):
            assert spit(verb, images, "-o", output, "--device", "cpu", "--workers", 2).code == 0
            runs.append(stamps(output))
        assert (runs[0] != runs[1]) is again
