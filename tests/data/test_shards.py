import io
import tarfile
from pathlib import Path

import pytest

from spit.data.shards import expand_pattern, index_shard, is_shard, read_member
from spit.errors import ImageError


def write_shard(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def test_members_are_found_with_their_labels_and_read_alone(tmp_path: Path) -> None:
    long = "deep/" * 30 + "c.webp"  # a name that needs a header of its own
    path = write_shard(tmp_path / "a.tar", {
        "a.jpg": b"first", "a.cls": b"7\n", "b.cls": b"12", "b.PNG": b"second!", long: b"third", "notes.txt": b"no",
        "d.seg.png": b"a mask: its extension is seg.png", "._a.jpg": b"what macOS leaves"})
    members = index_shard(path)
    assert [(member.name, member.label) for member in members] == [("a.jpg", "7"), ("b.PNG", "12"), (long, None)]
    assert [read_member(path, member.offset, member.size) for member in members] == [b"first", b"second!", b"third"]


def test_patterns(tmp_path: Path) -> None:
    assert expand_pattern("s-{008..011}.tar") == ["s-008.tar", "s-009.tar", "s-010.tar", "s-011.tar"]
    assert expand_pattern("{a,b}-{1..2}") == ["a-1", "a-2", "b-1", "b-2"]
    for name in ("y.tar", "x.tar"):
        write_shard(tmp_path / name, {"a.jpg": b""})
    assert expand_pattern(f"{tmp_path}/*.tar") == [f"{tmp_path}/x.tar", f"{tmp_path}/y.tar"]
    (tmp_path / "{odd}").mkdir()
    assert expand_pattern(f"{tmp_path}/{{odd}}") == [f"{tmp_path}/{{odd}}"]  # it is there, so it is meant
    with pytest.raises(ImageError, match=r"z\*: no file has that pattern"):
        expand_pattern(f"{tmp_path}/z*")
    assert is_shard("A.TAR")
    assert not is_shard("a.tar.gz")


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"nowhere\.tar: no such shard"):
        index_shard(tmp_path / "nowhere.tar")
    (tmp_path / "text.tar").write_text("no tar" * 1000)
    with pytest.raises(ImageError, match="expected a whole, uncompressed tar file"):
        index_shard(tmp_path / "text.tar")
    with pytest.raises(ImageError, match=r"expected members named key\.jpg"):
        index_shard(write_shard(tmp_path / "empty.tar", {"a.txt": b"x"}))
    with pytest.raises(ImageError, match="expected a readable shard"):
        read_member(tmp_path / "nowhere.tar", 0, 1)


def test_a_shard_that_was_cut_off_gives_what_is_left(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "a.tar", {"a.jpg": b"x" * 4000})
    member = index_shard(path)[0]
    with path.open("r+b") as file:
        file.truncate(2000)
    assert len(read_member(path, member.offset, member.size)) == 2000 - member.offset
