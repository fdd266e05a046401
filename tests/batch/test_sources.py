"""Listings of folders, patterns, shards, tables and file systems, and the bytes of what they name."""

import io
import os
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batch.conftest import Corpus, picture
from spit.batch.options import Columns
from spit.batch.sources import Reader, list_images
from spit.errors import ImageError

FILES = {f"{index:04d}.png": picture(index) for index in range(3)}


def read(*inputs: object, columns: Columns = Columns(), **options: int) -> dict[str, bytes]:  # noqa: B008
    given = [str(one) for one in inputs]
    reader = Reader(given, columns, **options)
    return {item.key: reader(item) for item in list_images(given, columns).items}


def shard(path: Path) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in {**FILES, "0000.cls": b"3", "readme.txt": b"no image"}.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
    return path


def table(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns or {"id": [10, 11, 12], "image": list(FILES.values())}), path, row_group_size=2)
    return path


def test_a_folder(corpus: Corpus) -> None:
    assert read(corpus(3, broken=0)) == FILES


def test_a_folder_of_everything(corpus: Corpus) -> None:
    folder = corpus(1, broken=0)
    shard(folder / "b.tar")
    table(folder / "c.parquet")
    (folder / ".hidden.png").write_bytes(b"")
    (folder / "notes.txt").write_text("")
    found = read(folder)
    assert list(found) == ["0000.png", *(f"b.tar/{name}" for name in FILES), *(f"c.parquet#{row}" for row in range(3))]
    assert list(found.values())[1:] == [*FILES.values(), *FILES.values()]


def test_patterns(corpus: Corpus) -> None:
    folder = corpus(3, broken=0)
    assert list(read(folder / "000[12].png")) == [str(folder / name) for name in ("0001.png", "0002.png")]
    assert list(read(folder / "{0002..0002}.png")) == [str(folder / "0002.png")]
    for index in range(2):
        shard(folder / f"s-{index}.tar")
    assert len(read(folder / "s-{0..1}.tar")) == 6


def test_several_inputs(corpus: Corpus) -> None:
    first, second = corpus(1, 0, "a"), corpus(1, 0, "b")
    assert list(read(first, second)) == [str(folder / "0000.png") for folder in (first, second)]
    with pytest.raises(ImageError, match=r"expected each image under a key of its own, got '.*0000.png' twice"):
        read(first, first)


@pytest.mark.parametrize("column", [None, "image"])
def test_tables(tmp_path: Path, column: str | None) -> None:
    plain = table(tmp_path / "a.parquet")
    assert list(read(plain, columns=Columns(column, "id"))) == ["10", "11", "12"]
    nested = table(tmp_path / "b.parquet", image=[{"path": "x", "bytes": data} for data in FILES.values()])
    assert list(read(nested, columns=Columns(column)).values()) == list(FILES.values())


def test_tables_without_images(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", name=["a"], image=[None])
    with pytest.raises(ImageError, match=r"expected a column of bytes, .* got name \(string\), image \(null\)"):
        read(path)
    with pytest.raises(ImageError, match="expected a column 'id', got image"):
        read(table(tmp_path / "b.parquet", image=[b"x"]), columns=Columns(None, "id"))
    with pytest.raises(ImageError, match="expected the bytes of an image, got null"):
        read(table(tmp_path / "c.parquet", image=pa.array([None], pa.binary())))
    with pytest.raises(ImageError, match="got tables without a row"):
        read(table(tmp_path / "f.parquet", image=pa.array([], pa.binary())))
    with pytest.raises(ImageError, match="expected each image under a key of its own, got 'x' twice"):
        read(table(tmp_path / "d.parquet", id=["x", "x"], image=[b"a", b"b"]), columns=Columns(None, "id"))
    (tmp_path / "e.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ImageError, match="expected a whole Parquet file"):
        read(tmp_path / "e.parquet")


@pytest.mark.parametrize("scheme", ["file", "fsspec+file"])
def test_file_systems(corpus: Corpus, scheme: str) -> None:
    folder = corpus(3, broken=0)
    (folder / ".hidden.png").write_bytes(b"")
    shard(folder / "s-0.tar")
    table(folder / "t.parquet")
    uri = f"{scheme}://{folder}"
    assert list(read(uri)) == [*FILES, *(f"s-0.tar/{name}" for name in FILES),
                               *(f"t.parquet#{row}" for row in range(3))]
    assert list(read(f"{uri}/*.png").values()) == list(FILES.values())
    assert list(read(f"{uri}/s-{{0..0}}.tar").values()) == list(FILES.values())
    assert list(read(f"{uri}/0001.png").values()) == [FILES["0001.png"]]
    with pytest.raises(ImageError, match="expected images, shards or Parquet there, got none"):
        read(f"{uri}/*.jpg")


def test_a_listing_has_a_digest_of_its_files(corpus: Corpus) -> None:
    folder = corpus(3, broken=0)
    before = list_images([str(folder)]).digest
    assert list_images([str(folder)]).digest == before
    os.utime(folder / "0001.png", (1, 1))
    assert list_images([str(folder)]).digest != before


@pytest.mark.parametrize("given", ["nowhere", "nowhere/*.png", "a://b", "file:///nowhere", "s3://"])
def test_what_is_not_there(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ImageError) as caught:
        read(given)
    assert "\n" not in str(caught.value)


def test_passwords_are_not_shown() -> None:
    with pytest.raises(ImageError) as caught:
        read("nosuch://user:secret@bucket/a")
    assert "secret" not in str(caught.value)


def test_odd_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    with open(os.fsencode(folder) + b"/\xff.png", "wb") as file:
        file.write(b"bytes")
    os.mkfifo(folder / "pipe.png")
    (folder / "dead.png").symlink_to(folder / "nothing")
    listing = list_images([str(folder)])
    reader, answers = Reader([str(folder)]), {}
    for item in listing.items:
        try:
            answers[item.key] = reader(item)
        except ImageError as error:
            answers[item.key] = str(error)
    assert answers["\\udcff.png"] == b"bytes"
    assert "no regular file" in answers["pipe.png"]
    assert "No such file" in answers["dead.png"]
    assert listing.table().num_rows == 3


def test_files_of_too_many_bytes(corpus: Corpus, tmp_path: Path) -> None:
    for given in (corpus(1, 0), shard(tmp_path / "a.tar"), table(tmp_path / "a.parquet")):
        with pytest.raises(ImageError, match=r"expected at most 100 bytes \(--max-bytes\), got"):
            read(given, max_bytes=100)
