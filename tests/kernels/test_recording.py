"""When an operation is recorded, with a stand-in for CUDA graphs; triton/test_cuda.py has those."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from spit.kernels import Rules, recording
from spit.kernels.recording import SEEN_BEFORE, Recordings


class FakeRecording:
    """Answers as a recording would, and says so."""

    def __init__(self, operation: Any, tensors: tuple[Tensor, ...], options: Any, pool: Any) -> None:
        self.operation, self.tensors, self.options = operation, tensors, options

    def __call__(self) -> Any:
        return "replayed", self.operation(self.tensors, self.options)[1]


class OnCuda(Tensor):
    """Says it is, so that a machine without CUDA can ask when something is recorded."""

    is_cuda = True


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> Recordings:
    monkeypatch.setattr(recording, "_Recording", FakeRecording)
    monkeypatch.setattr(recording, "room_for", lambda device: 10)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    return Recordings()


def contract(tensors: tuple[Tensor, ...], rules: Rules) -> tuple[str, int]:
    return "plain", int(tensors[0].sum())


def image(size: int, value: int = 1) -> tuple[Tensor]:
    return (torch.full((1, 1, 1, size), value).as_subclass(OnCuda),)


def test_a_size_is_recorded_once_it_has_been_seen(replay: Recordings) -> None:
    answers = [replay(contract, image(3, value), Rules()) for value in range(5)]
    assert [how for how, _ in answers] == ["plain"] * SEEN_BEFORE + ["replayed"] * (5 - SEEN_BEFORE)
    assert [total for _, total in answers] == [0, 3, 6, 9, 12]


def test_operations_sizes_and_rules_have_recordings_of_their_own(replay: Recordings) -> None:
    def double(tensors: tuple[Tensor, ...], rules: Rules) -> tuple[str, int]:
        return "plain", 2 * int(tensors[0].sum())

    for _ in range(SEEN_BEFORE + 1):
        for rules in (Rules(), lambda: Rules(levels=2)):
            for size in (1, 2):
                assert replay(contract, image(size), rules)[1] == size
        assert replay(double, image(1), Rules())[1] == 2
    assert len(replay) == 5
    replay.clear()
    assert len(replay) == 0


def test_recordings_not_used_for_longest_make_room(replay: Recordings) -> None:
    def held_after(size: int) -> list[int]:
        for _ in range(SEEN_BEFORE + 1):
            assert replay(contract, image(size), Rules())[1] == size
        return [shape[-1] for _, ((shape, _),), *_ in replay._held]

    assert held_after(3) == [3]
    assert held_after(4) == [3, 4]
    assert held_after(3) == [4, 3]
    assert held_after(5) == [3, 5]
    assert held_after(99) == [3, 5]  # larger than all the room
    assert held_after(10) == [10]


def test_the_cpu_and_failed_and_inner_operations_are_not_recorded(replay: Recordings) -> None:
    def fail(tensors: tuple[Tensor, ...], rules: Rules) -> Any:
        raise ValueError("failed")

    def outer(tensors: tuple[Tensor, ...], rules: Rules) -> Any:
        return replay(contract, tensors, rules)

    for _ in range(SEEN_BEFORE + 1):
        assert replay(contract, (torch.ones(1, 1, 1, 3),), Rules()) == ("plain", 3)
        with pytest.raises(ValueError, match="failed"):
            replay(fail, image(3), Rules())
    assert len(replay) == 0
    for _ in range(SEEN_BEFORE):
        replay(outer, image(3), Rules())
    assert len(replay) == 1
