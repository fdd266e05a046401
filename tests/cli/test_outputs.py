import errno
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from spit.cli.outputs import check_folder, real_paths, write_files


def test_writes_all_and_replaces(tmp_path: Path, names: Callable[[Path], list[str]]) -> None:
    write_files({tmp_path / "a/x.json": b"1", tmp_path / "y.png": b"2"})
    write_files({tmp_path / "y.png": b"3"})
    assert names(tmp_path) == ["a/x.json", "y.png"]
    assert (tmp_path / "y.png").read_bytes() == b"3"


def test_a_full_disk_leaves_nothing_and_the_old_files_whole(tmp_path: Path, names: Callable[[Path], list[str]],
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.json").write_text("old")
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        if data == b"new 2":
            write(self, b"ne")
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"cannot write to the folder .* \(No space left on device\); choose an"):
        write_files({tmp_path / "x.json": b"new 1", tmp_path / "y.png": b"new 2"})
    assert names(tmp_path) == ["x.json"]
    assert (tmp_path / "x.json").read_text() == "old"


def test_a_folder_that_is_a_file(tmp_path: Path, names: Callable[[Path], list[str]]) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match=r"cannot write to the folder .*/a \(.*\); choose another --output"):
        write_files({tmp_path / "a/x.png": b""})
    assert names(tmp_path) == ["a"]


def test_a_folder_is_checked_and_not_made(tmp_path: Path) -> None:
    for folder in (None, tmp_path, tmp_path / "a/b"):
        check_folder(folder)
    assert not [*tmp_path.iterdir()]
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"expected a folder for --output, got the file .*; choose another"):
        check_folder(tmp_path / "file")
    with pytest.raises(OSError, match=r"cannot write to the folder .*file/a \(Not a directory\); choose"):
        check_folder(tmp_path / "file/a")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder where not even root may write")
@pytest.mark.parametrize("verb", ["prototypes --data", "train-head --data", "evaluate classification --data", "batch",
                                  "tokenize", "retrofit --images"])
def test_a_folder_that_cannot_be_made_is_refused_before_the_work(verb: str, spit: Callable[..., Any],
                                                                 tmp_path: Path) -> None:
    assert spit(*verb.split(), tmp_path, "-o", "/proc/x/y").error == (
        "spit: cannot write to the folder /proc/x/y (No such file or directory); choose another --output\n")


def test_a_file_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x.png").mkdir()
    with pytest.raises(IsADirectoryError, match=r"x\.png"):
        write_files({tmp_path / "x.png": b""})


def test_an_input_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "cat.overlay.png").write_text("mine")
    with pytest.raises(ValueError, match="you gave and would be overwritten"):
        write_files({tmp_path / "sub/../cat.overlay.png": b"x"}, real_paths([tmp_path / "cat.overlay.png"]))
    assert (tmp_path / "cat.overlay.png").read_text() == "mine"


def test_threads_do_not_mix_their_files(tmp_path: Path) -> None:
    def write(number: int) -> None:
        write_files({tmp_path / f"{number}.{kind}": f"{number} {kind}".encode() * 999 for kind in ("a", "b", "c")})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(200)))
    assert len(list(tmp_path.iterdir())) == 600
    assert all(path.read_text().startswith(path.name.replace(".", " ")) for path in tmp_path.iterdir())
