"""When an operation is recorded. Recordings themselves need CUDA: kernels/triton/test_cuda.py and test_compiled.py."""

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from spit.kernels import Rules
from spit.kernels import recording as module
from spit.kernels.recording import SEEN_BEFORE, Recordings


class FakeRecording:
    """Counts how often it is made; answers as a recording would."""

    made = 0

    def __init__(self, operation: Callable[..., Any], tensors: tuple[Tensor, ...], options: Any,
                 pool: Any) -> None:
        type(self).made += 1
        self.operation, self.given, self.options = operation, tensors, options

    def __call__(self) -> Any:
        return "replayed", self.operation(self.given, self.options)[1]


class OnCuda(Tensor):
    """Says it is, so that a machine without CUDA can ask when something is recorded."""

    is_cuda = True


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> Recordings:
    monkeypatch.setattr(module, "_Recording", FakeRecording)
    monkeypatch.setattr(module, "room_for", lambda device: 1000)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    FakeRecording.made = 0
    return Recordings()


def contract(tensors: tuple[Tensor, ...], rules: Rules) -> tuple[str, int]:
    return "plain", int(tensors[0].sum())


def image(size: int, value: int = 1) -> tuple[Tensor]:
    return (torch.full((1, 1, 1, size), value).as_subclass(OnCuda),)


def test_a_size_is_recorded_once_it_has_been_seen(replay: Recordings) -> None:
    answers = [replay(contract, image(3, value), Rules()) for value in range(5)]
    assert [how for how, _ in answers] == ["plain"] * SEEN_BEFORE + ["replayed"] * (5 - SEEN_BEFORE)
    assert [total for _, total in answers] == [0, 3, 6, 9, 12]
    assert FakeRecording.made == 1


def test_sizes_and_rules_have_recordings_of_their_own(replay: Recordings) -> None:
    for _ in range(SEEN_BEFORE + 2):
        for rules in (Rules(), Rules(levels=2)):
            for size in (3, 4):
                assert replay(contract, image(size), rules)[1] == size
    assert FakeRecording.made == len(replay) == 4


def test_recordings_not_used_for_longest_make_room(replay: Recordings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "room_for", lambda device: 10)

    def held_after(size: int) -> list[int]:
        for _ in range(SEEN_BEFORE + 1):
            assert replay(contract, image(size), Rules())[1] == size
        return [shape[-1] for _, ((shape, _),), *_ in replay._held]

    assert held_after(3) == [3]
    assert held_after(4) == [3, 4]
    assert held_after(3) == [4, 3]
    assert held_after(5) == [3, 5]
    assert held_after(2) == [3, 5, 2]
    assert held_after(99) == [3, 5, 2]  # larger than all the room
    assert held_after(10) == [10]


def test_nothing_is_recorded_inside_another_recording(replay: Recordings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    answers = {replay(contract, image(3), Rules())[0] for _ in range(6)}
    assert answers == {"plain"}


def test_operations_have_recordings_of_their_own(replay: Recordings) -> None:
    def double(tensors: tuple[Tensor, ...], rules: Rules) -> tuple[str, int]:
        return "plain", 2 * int(tensors[0].sum())

    for _ in range(SEEN_BEFORE + 2):
        assert replay(contract, image(3), Rules())[1] == 3
        assert replay(double, image(3), Rules())[1] == 6
    assert len(replay) == 2


def test_large_batches_and_the_cpu_are_not_recorded(replay: Recordings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "room_for", lambda device: 3)
    for _ in range(SEEN_BEFORE + 2):
        assert replay(contract, image(4), Rules()) == ("plain", 4)
        assert replay(contract, (torch.ones(1, 1, 1, 3),), Rules()) == ("plain", 3)
    assert not replay._seen


def test_buffers_made_in_inference_mode_are_written_to_outside_it(
    replay: Recordings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operation that hands on what it is given: a replay has nothing to launch."""
    monkeypatch.undo()
    monkeypatch.setattr(module, "room_for", lambda device: 1000)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: SimpleNamespace(replay=lambda: None))
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, **_: nullcontext())

    def hand_on(tensors: tuple[Tensor, ...], rules: Rules) -> tuple[Tensor, ...]:
        return tensors

    with torch.inference_mode():
        for value in range(SEEN_BEFORE + 1):
            [answer] = replay(hand_on, image(3, value), Rules())
            assert answer.tolist() == [[[[value] * 3]]]
    [answer] = replay(hand_on, image(3, 5), Rules())
    assert answer.tolist() == [[[[5, 5, 5]]]]
    assert not answer.is_inference()


def test_recordings_of_the_same_tensors_share_their_input(replay: Recordings) -> None:
    for rules in (Rules(), Rules(levels=2)):
        for value in range(SEEN_BEFORE + 1):
            assert replay(contract, image(3, value), lambda rules=rules: rules)[1] == 3 * value  # type: ignore[misc]
    assert len(replay) == 2
    assert len(replay._given) == 1
    assert replay(contract, image(3, 7), Rules()) == ("replayed", 21)


def test_what_is_forgotten_is_recorded_again_later(replay: Recordings) -> None:
    for _ in range(2):
        for _ in range(SEEN_BEFORE + 1):
            replay(contract, image(3), Rules())
        assert len(replay) == 1
        replay.clear()
    assert len(replay) == 0
    assert FakeRecording.made == 2


def test_an_operation_inside_another_has_no_recording_of_its_own(replay: Recordings) -> None:
    def outer(tensors: tuple[Tensor, ...], rules: Rules) -> Any:
        return replay(contract, tensors, rules)

    for _ in range(SEEN_BEFORE):
        replay(outer, image(3), Rules())
    assert len(replay) == 1


def test_a_failed_operation_is_not_recorded(replay: Recordings) -> None:
    def fail(tensors: tuple[Tensor, ...], rules: Rules) -> Any:
        raise ValueError("no")

    for _ in range(SEEN_BEFORE + 1):
        with pytest.raises(ValueError, match="no"):
            replay(fail, image(3), Rules())
    for _ in range(SEEN_BEFORE):
        replay(contract, image(3), Rules())
    assert len(replay) == 1
