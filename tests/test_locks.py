"""Locks between processes; tests/data, tests/batch and tests/cli have those of processes that use them."""

from pathlib import Path
from typing import NoReturn

import pytest

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
