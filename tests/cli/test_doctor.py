import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from spit import doctor
from spit.doctor import answers, machine
from spit.errors import MissingExtra
from spit.predictor import load

Run = Callable[..., Any]


def test_this_machine_is_sound(spit: Run) -> None:
    result = spit("doctor")
    assert (result.code, result.out.splitlines()[-1]) == (0, "0 faults")
    assert "backends reference, numba" in result.out


def test_faults_are_lines_and_exit_code_1(spit: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "machine_faults", lambda: iter(["the first"]))
    monkeypatch.setattr(doctor, "answer_faults", lambda: iter(["the second"]))
    result = spit("doctor", "--json")
    assert result.code == 1
    assert result.json["faults"] == ["the first", "the second"]
    assert result.json["versions"]["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert {"spit", "python", "system", "backends", "devices", "caches"} <= set(result.json)
    assert {"spit: the first", "spit: the second"} <= set(spit("doctor").err.splitlines())


def test_a_missing_extra_is_no_fault(spit: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Iterator[str]:
        raise MissingExtra("scikit-image", "demo", "it")
        yield ""

    monkeypatch.setattr(doctor, "answer_faults", fail)
    result = spit("doctor")
    assert (result.code, "answers not checked: it needs scikit-image" in result.out) == (0, True)


def test_faults_of_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "version").touch()
    monkeypatch.setattr(machine, "NVIDIA", tmp_path / "version")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    [fault] = machine.machine_faults()
    assert "install a CUDA build of torch" in fault
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    monkeypatch.setattr(machine, "caches", lambda: {"numba": None})
    triton, cache = machine.machine_faults()
    assert "triton is not installed" in triton
    assert "NUMBA_CACHE_DIR" in cache


def test_answers_that_differ() -> None:
    good = json.loads(answers.FILE.read_text())["answers"]["chelsea.png"]
    assert answers.compare(answers.answer(load(answers.MODEL, "cpu"), answers._sample_paths()[1]), good) == ""
    key, largest = next(iter(good["logits"].items()))
    for change, words in (({"pixels": ""}, "the resized image differs"), ({"labels": ""}, "the partition differs"),
                          ({"logits": {**good["logits"], key: largest + 0.01}}, "expected logits"),
                          ({"logits": {"1": largest}}, "expected logits")):
        assert answers.compare({**good, **change}, good).startswith(words)


def test_weights_that_answers_were_not_recorded_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text('{"digest": "other"}')
    monkeypatch.setattr(answers, "FILE", tmp_path / "answers.json")
    [fault] = answers.answer_faults()
    assert fault.startswith("the weights of spit_tiny_16 are not those")
