"""Locks between processes; tests/data, tests/batch and tests/cli have those of processes that use them."""

import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from spit import locks
from spit.locks import locked


def test_one_holder_at_a_time_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a/b/.lock"
    with locked(path, wait=False) as mine, locked(path, wait=False) as other:
        assert (mine, other) == (True, False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_does_not_keep_it_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *_: object, **__: object) -> NoReturn:
        raise FileNotFoundError(self)  # as below /proc

    monkeypatch.setattr(Path, "mkdir", refuse)
    with locked(tmp_path / "a/.lock", wait=True) as mine:
        assert mine  # writing will say what is wrong


@pytest.mark.parametrize(("module", "name"), [(Path, "mkdir"), (os, "open"), (locks.fcntl, "flock"), (os, "fstat")])
def test_a_signal_while_the_lock_is_taken_leaves_nothing(module: Any, name: str, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    call, left = getattr(module, name), [name]

    def interrupted(*arguments: Any, **options: Any) -> Any:
        answer = call(*arguments, **options)
        if left:
            left.pop()
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(module, name, interrupted)
    with pytest.raises(KeyboardInterrupt), locked(tmp_path / "a/b/.lock", wait=False):
        pytest.fail("the block is not entered")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_while_another_holds_the_lock_leaves_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a/.lock"

    def interrupt(*_: Any) -> NoReturn:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with locked(path, wait=False):
        monkeypatch.setattr(locks.fcntl, "flock", interrupt)
        with pytest.raises(KeyboardInterrupt), locked(path, wait=True):
            pytest.fail("the block is not entered")
        assert path.exists()
    assert list(tmp_path.iterdir()) == []
