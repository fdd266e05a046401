"""Files written whole or not at all."""

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spit.files import ABANDONED, TEMPORARY, remove_abandoned, replacing, write_together, write_whole


def test_a_file_and_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a/b/c.bin"
    for data in (b"old", b"new"):
        write_whole(path, data)
        assert path.read_bytes() == data
    assert [*path.parent.iterdir()] == [path]


def test_two_writers_of_one_folder_do_not_meet(tmp_path: Path) -> None:
    """Each has its own temporary file, also for the same name; the last one to end stays."""
    path = tmp_path / "x"
    with replacing(path) as one:
        one.write_bytes(b"one")
        with replacing(path) as two, replacing(tmp_path / "y") as other:
            two.write_bytes(b"two")
            other.write_bytes(b"other")
        assert path.read_bytes() == b"two"
    assert (path.read_bytes(), (tmp_path / "y").read_bytes()) == (b"one", b"other")

    def write(number: int) -> None:
        write_whole(tmp_path / f"{number % 2}", bytes([number]) * 9999)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert len({(tmp_path / "0").read_bytes()[i] for i in range(9999)}) == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0", "1", "x", "y"]


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("x", "old")]


def test_files_that_belong_together_take_their_names_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, taken = os.replace, []

    def replace(source: Any, target: Path) -> None:
        assert len([*tmp_path.iterdir()]) == 3  # all are written
        if target.name == "c":
            raise OSError(errno.EISDIR, "Is a directory")
        taken.append(target.name)
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="Is a directory"):
        write_together({tmp_path / name: b"" for name in "abc"})
    assert taken == ["a", "b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_write_that_fails_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError) as caught:
        write_whole(tmp_path / "file" / "x", b"")
    assert caught.value.filename == str(tmp_path / "file" / "x")


def test_what_killed_writers_left_goes_after_an_hour(tmp_path: Path) -> None:
    old, young, other = (tmp_path / name for name in (f"{TEMPORARY}a", f"{TEMPORARY}b", "mine"))
    for path in (old, young, other):
        path.touch()
    for path in (old, other):
        os.utime(path, times=(time.time() - ABANDONED - 1,) * 2)
    remove_abandoned(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([young, other])
    remove_abandoned(tmp_path / "nowhere")
