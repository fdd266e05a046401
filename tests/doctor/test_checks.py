"""spit doctor: nothing to report here, and each fault that it looks for is found when a test causes it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from spit import kernels
from spit.cli import main
from spit.doctor import checks, machine
from spit.doctor.answers import SAMPLES, Answers, answer, read_answers, sample_paths
from spit.errors import MissingExtra
from spit.predictor import load
from spit.registry import list_models


def test_this_machine_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert shown.count(": good (") == len(checks.CHECKS)
    assert "backends reference, cpu" in shown


def test_every_model_and_image_has_a_recorded_answer() -> None:
    recorded = read_answers()
    assert sorted(recorded.answers) == sorted(recorded.digests) == sorted(list_models(pretrained=True))
    for images in recorded.answers.values():
        assert tuple(images) == SAMPLES


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Iterator[str]]], None]:
    """Leaves spit doctor one check."""
    return lambda check: monkeypatch.setattr(checks, "CHECKS", {"one": check})


def test_a_fault_is_one_line_and_exit_code_1(only: Any, capsys: pytest.CaptureFixture[str]) -> None:
    only(lambda: iter(["the first", "the second"]))
    assert main(["doctor"]) == 1
    answered = capsys.readouterr()
    assert "one: FAULT" in answered.out
    assert [line for line in answered.err.splitlines() if "the " in line] == ["spit: the first", "spit: the second"]


def test_json_has_the_machine_and_the_faults(only: Any, capsys: pytest.CaptureFixture[str]) -> None:
    only(lambda: iter(["broken"]))
    assert main(["doctor", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["faults"] == ["broken"]
    assert document["checks"][0]["check"] == "one"
    assert document["versions"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert {"spit", "python", "system", "backends", "devices", "caches", "free"} <= set(document)


def test_an_error_in_a_check_is_a_fault_with_its_cause(only: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> Iterator[str]:
        yield "before"
        raise RuntimeError("no such\nkernel")

    only(fail)
    assert main(["doctor"]) == 1
    assert "spit: one: RuntimeError: no such kernel" in capsys.readouterr().err


def test_a_missing_extra_is_said_and_no_fault(only: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> Iterator[str]:
        raise MissingExtra("scikit-image", "demo", "it")
        yield ""

    only(fail)
    assert main(["doctor"]) == 0
    assert "not checked: it needs scikit-image" in capsys.readouterr().out


def test_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert list(checks.check_installation()) == []
    monkeypatch.setattr(machine, "requirements", lambda: ["numpy>=99", "torch>=2"])
    [fault] = checks.check_installation()
    assert "numpy" in fault
    assert "spit needs >=99" in fault
    monkeypatch.setattr(machine, "requirements", list)
    monkeypatch.setattr(machine, "installed", lambda name: None if name == "numba" else "1")
    assert list(checks.check_installation()) == ["numba is not installed; pip install numba"]
    monkeypatch.undo()
    driver = tmp_path / "version"
    driver.touch()
    monkeypatch.setattr(checks, "NVIDIA", driver)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    [fault] = checks.check_installation()
    assert "install a CUDA build of torch" in fault
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    [fault] = checks.check_installation()
    assert "triton is not installed" in fault


def test_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_disk", lambda: 5 * 2**20)
    monkeypatch.setattr(machine, "free_memory", lambda: 7 * 2**20)
    monkeypatch.setattr(machine, "caches", lambda: {"numba": None})
    disk, memory, cache = checks.check_space()
    assert disk.startswith("5 MiB of disk")
    assert memory.startswith("7 MiB of memory")
    assert "NUMBA_CACHE_DIR" in cache
    monkeypatch.setattr(machine, "free_memory", lambda: None)
    assert len(list(checks.check_space())) == 2


def test_partitions_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    right = kernels.reference.nearest_sites
    monkeypatch.setattr(kernels.reference, "nearest_sites", lambda *given: right(*given).flip(1))
    faults = list(checks.check_partitions())
    assert len(faults) == 4  # by numba on three runs, and alone
    assert all("VoronoiTokenizer" in fault for fault in faults)


def test_partitions_that_depend_on_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    right, calls = checks._labels, iter(range(10**6))
    monkeypatch.setattr(checks, "TOKENIZERS", checks.TOKENIZERS[:1])
    monkeypatch.setattr(checks, "_labels", lambda *given: right(*given) + (next(calls) == 2))
    assert list(checks.check_partitions()) == [
        f"partitions of {checks.TOKENIZERS[0]} by backend reference differ from the reference's on a second run"]


def test_logits_that_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def batchwise(*given: Any) -> Any:
        def predict(images: torch.Tensor) -> Any:
            return SimpleNamespace(logits=torch.full((len(images) if images.ndim == 4 else 1, 2), images.ndim))

        return predict

    monkeypatch.setattr(checks, "load", batchwise)
    faults = list(checks.check_batches())
    assert len(faults) == 2 * len(machine.devices())
    assert "logits on cpu move by 1 in a batch" in faults[0]


def test_answers_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor, path = load("spit_tiny_16", "cpu"), sample_paths()[1]
    good = answer(predictor, path)
    assert list(checks.compare_answer(predictor, path, good)) == []
    index, largest = next(iter(good.logits.items()))
    others = {**good.logits, index: largest + 0.01}
    strangers = {key + 1: value for key, value in good.logits.items()}
    for change, words in (({"pixels": ""}, "the resized image differs"), ({"labels": ""}, "the partition differs"),
                          ({"logits": others}, "differ by 0.01"), ({"logits": strangers}, "the largest logits")):
        [fault] = checks.compare_answer(predictor, path, replace(good, **change))
        assert words in fault


def test_weights_that_answers_were_not_recorded_with(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = read_answers()
    name = list_models(pretrained=True)[0]
    monkeypatch.setattr(checks, "list_models", lambda pretrained: [name])
    monkeypatch.setattr(checks, "read_answers", lambda: Answers({name: "other"}, recorded.answers))
    assert list(checks.check_answers()) == [
        f"the weights of {name} are not those that answers were recorded with; install spit again"]


def test_pictures_without_scikit_image(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> list[Path]:
        raise MissingExtra("scikit-image", "demo", "it")

    monkeypatch.setattr(checks, "sample_paths", missing)
    assert checks._pictures(3).shape == (3, 3, checks.SIDE, checks.SIDE)
