"""Locks between processes; tests/evaluation, tests/batch and tests/cli have those of processes that use them."""

from pathlib import Path
from typing import NoReturn

import pytest

from spit import locks
from spit.locks import locked


def test_one_holder_at_a_time_and_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a/b/.lock"
    with locked(path) as mine, locked(path) as other:
        assert (mine, other) == (True, False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), locked(path):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_needs_no_lock(tmp_path: Path) -> None:
    tmp_path.joinpath("file").write_text("")
    with locked(tmp_path / "file/.lock") as mine:
        assert mine  # writing will say what is wrong


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    with locked(tmp_path / ".lock") as mine:
        assert mine
