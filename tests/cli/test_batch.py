"""``spit batch``: options to a run, and what it says."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def images(tmp_path: Path, photo: Callable[..., Path]) -> Path:
    pytest.importorskip("pyarrow")
    for index in range(5):
        photo(tmp_path / f"in/{index}.png", seed=index)
    (tmp_path / "in/5.png").write_bytes(b"broken")
    return tmp_path / "in"


@pytest.fixture
def run(spit: Callable[..., Any], images: Path, save_tiny: Callable[..., Path], tmp_path: Path) -> Callable[..., Any]:
    model = save_tiny(num_classes=3)
    return lambda *more: spit("batch", images, "--output", tmp_path / "out", "--model", model, "--size", 32,
                              "--device", "cpu", "--workers", 0, *more)


def test_a_run_and_its_continuation(run: Callable[..., Any], tmp_path: Path) -> None:
    first = run()
    assert first.code == 0, first.err
    assert first.out.startswith(f"6 images: 5 rows and 1 reject are in {tmp_path / 'out'}\n")
    assert re.search(r"^6 images in [\d.]+ s \([\d.]+ images/s\)$", first.out, re.MULTILINE)
    assert "6 were done earlier" in run().out
    found = run("--json").json
    assert {name: found[name] for name in ("images", "rows", "rejects", "earlier", "workers")} == {
        "images": 6, "rows": 5, "rejects": 1, "earlier": 6, "workers": 0}


def test_no_image_succeeds(run: Callable[..., Any], images: Path) -> None:
    for index in range(5):
        (images / f"{index}.png").unlink()
    for more in ((), ("--json",)):  # the second run finds all of it done
        found = run(*more)
        assert found.code == 1
        assert found.err.startswith("spit: no image succeeded; the first reason: 5.png: expected an image")
        assert found.err.count("\n") == 1
    assert found.json["rejects"] == 1


@pytest.mark.parametrize("op", ["tokenize", "embed", "explain", "segment"])
def test_operations(run: Callable[..., Any], op: str) -> None:
    found = run("--op", op, "--tokenizer", "patch", "--patch-size", 8)
    assert found.code == 0, found.err
    assert "5 rows and 1 reject" in found.out


def test_changes_are_refused(run: Callable[..., Any], images: Path) -> None:
    run()
    assert "holds another run: work.top was 5, is 2; choose another --output" in run("--top", 2).error
    assert 'work.op was "classify", is "segment"' in run("--op", "segment").error
    assert 'work.op was "classify", is "explain"' in run("--op", "explain", "--method",
                                                                                 "flow").error
    assert "key_column was not set" in run("--key-column", "name").error
    assert "tokenizer.name was" in run("--tokenizer", "patch").error
    (images / "5.png").unlink()
    assert "images was 6, is 5; input was" in run().error


def test_bad_options_are_one_line(run: Callable[..., Any], spit: Callable[..., Any], images: Path) -> None:
    assert "did you mean 'classify'?" in run("--op", "classfy").error
    assert "expected no method with op classify" in run("--method", "flow").error
    assert "expected one --model" in run("--model", "a,b").error
    assert "no such path exists" in spit("batch", "--input", "nowhere", "--output", images / "o", "--workers", 0).error
    assert "give spit batch FOLDER" in spit("batch", "--output", images / "o").error
    assert "expected a folder for --output" in spit("batch", "--input", images, "--output", images / "5.png").error


@pytest.mark.parametrize(("missing", "told"), [
    ("pyarrow", "spit batch needs pyarrow; install the extra"),
    ("ray", "spit batch with workers (--workers 0 does without) needs ray[data]; install the extra")])
def test_missing_packages(missing: str, told: str, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    for name in [name for name in sys.modules if name.startswith("spit.batch.") and name != "spit.batch.options"]:
        monkeypatch.delitem(sys.modules, name)
    assert told in run("--workers", 1).error
