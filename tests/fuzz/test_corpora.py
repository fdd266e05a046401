"""Damaged shards and tables: every one is listed and read, or refused in one line."""

import io
import tarfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.cases import cases
from fuzz.test_files import DAMAGE, damaged, one_line, sound
from spit.data.shards import index_shard, read_member
from spit.errors import ImageError
from spit.segmentation.rle import decode_mask

Changes = list[tuple[str, int, bytes]]


@cache
def shard(form: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for index in range(3):
            for name, data in ((f"{'ä' * 60}/{index}.png", sound(index)), (f"{index}.cls", b"7")):
                about = tarfile.TarInfo(name)
                about.size = len(data)
                archive.addfile(about, io.BytesIO(data))
    return file.getvalue().rstrip(b"\0") + bytes(1024)


@cache
def table() -> bytes:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [0, 1, 2], "image": [sound(index) for index in range(3)]}), file, row_group_size=2)
    return file.getvalue()


@cases(200)
@given(st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]), DAMAGE)
def test_shards(tmp_path_factory: pytest.TempPathFactory, form: int, changes: Changes) -> None:
    file = tmp_path_factory.getbasetemp() / "shard.tar"
    file.write_bytes(damaged(shard(form), changes))
    try:
        members = index_shard(file)
    except ImageError as error:
        one_line(error)
        return
    for member in members:
        try:
            assert len(read_member(file, member.offset, member.size)) <= member.size
        except ImageError as error:
            one_line(error)


@cases(100)
@given(DAMAGE)
def test_tables(tmp_path_factory: pytest.TempPathFactory, changes: Changes) -> None:
    pytest.importorskip("pyarrow")
    from spit.batch.sources import Reader, list_images

    file = tmp_path_factory.getbasetemp() / "table.parquet"
    file.write_bytes(damaged(table(), changes))
    try:
        items = list_images([str(file)]).items
    except ImageError as error:
        one_line(error)
        return
    reader = Reader([str(file)])
    for item in items:
        try:
            assert isinstance(reader(item), bytes)
        except ImageError as error:
            one_line(error)


@cases(200)
@given(st.text(max_size=20) | st.text("0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmno", max_size=12),
       st.integers(0, 9), st.integers(0, 9))
def test_masks(counts: str, height: int, width: int) -> None:
    try:
        assert decode_mask((height, width), counts).shape == (height, width)
    except ValueError as error:
        one_line(error)


@cases(100)
@given(st.binary(max_size=20) | DAMAGE.map(lambda changes: damaged(b'["a", "b"]', changes)))
def test_notes_of_attempts(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    pytest.importorskip("pyarrow")
    from spit.batch.attempts import Attempts

    folder: Path = tmp_path_factory.getbasetemp()
    (folder / ".spit-attempt-00000.json").write_bytes(text)
    attempts = Attempts(folder, 0)
    assert attempts.failed
    with attempts.at_work():
        attempts.note("a")
