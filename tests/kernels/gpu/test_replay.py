"""When a contraction is recorded. Recordings themselves need CUDA: test_cuda.py."""

from collections import Counter, OrderedDict
from collections.abc import Callable
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from spit.kernels import Rules


class FakeRecording:
    """Counts how often it is made; answers as a recording would."""

    made = 0

    def __init__(self, contract: Callable[..., Any], features: Tensor, rules: Rules) -> None:
        type(self).made += 1
        self.contract, self.rules = contract, rules

    def __call__(self, features: Tensor) -> Any:
        return "replayed", self.contract(features, self.rules)[1]


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = import_module("spit.kernels.gpu.replay")
    monkeypatch.setattr(module, "_recordings", OrderedDict())
    monkeypatch.setattr(module, "_seen", Counter())
    monkeypatch.setattr(module, "_Recording", FakeRecording)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    FakeRecording.made = 0
    return module


def contract(features: Tensor, rules: Rules) -> tuple[str, int]:
    return "plain", int(features.sum())


def image(size: int, value: int = 1) -> Tensor:
    return torch.full((1, 1, 1, size), value)


def test_a_size_is_recorded_once_it_has_been_seen(replay: ModuleType) -> None:
    answers = [replay.replay(contract, image(3, value), Rules()) for value in range(5)]
    assert [how for how, _ in answers] == ["plain"] * replay.SEEN_BEFORE + ["replayed"] * (5 - replay.SEEN_BEFORE)
    assert [total for _, total in answers] == [0, 3, 6, 9, 12]
    assert FakeRecording.made == 1


def test_sizes_and_rules_have_recordings_of_their_own(replay: ModuleType) -> None:
    for _ in range(replay.SEEN_BEFORE + 2):
        for rules in (Rules(), Rules(levels=2)):
            for size in (3, 4):
                assert replay.replay(contract, image(size), rules)[1] == size
    assert FakeRecording.made == len(replay._recordings) == 4


def test_recordings_not_used_for_longest_make_room(replay: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "HELD", 10)

    def held_after(size: int) -> list[int]:
        for _ in range(replay.SEEN_BEFORE + 1):
            assert replay.replay(contract, image(size), Rules())[1] == size
        return [shape[-1] for shape, *_ in replay._recordings]

    assert held_after(3) == [3]
    assert held_after(4) == [3, 4]
    assert held_after(3) == [4, 3]
    assert held_after(5) == [3, 5]
    assert held_after(2) == [3, 5, 2]
    assert held_after(99) == [99]  # larger than all the room, and alone
    assert held_after(1) == [1]


def test_nothing_is_recorded_inside_another_recording(replay: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    answers = {replay.replay(contract, image(3), Rules())[0] for _ in range(6)}
    assert answers == {"plain"}


def test_the_cpu_records_nothing(
    replay: ModuleType, few_programs: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is CUDA here")
    monkeypatch.setattr(few_programs, "replay", lambda *_: pytest.fail("asked for a recording"))
    few_programs.superpixel_labels(torch.zeros(1, 1, 2, 3, dtype=torch.int16), Rules(levels=1))
