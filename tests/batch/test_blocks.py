"""Blocks: written whole or not at all, and never into another run's folder."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batch.conftest import Corpus
from spit.batch.attempts import note_of
from spit.batch.blocks import Folder, block_size
from spit.batch.operations import Rejected
from spit.batch.sources import Listing, list_images
from spit.errors import SpitError
from spit.files import TEMPORARY

SCHEMA = pa.schema([("key", pa.string())])


@pytest.fixture
def listing(corpus: Corpus) -> Listing:
    return list_images([str(corpus(25, broken=0))])


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_listing_is_divided_in_order(tmp_path: Path, listing: Listing) -> None:
    folder = Folder(tmp_path / "out")
    assert folder.begin(listing, {"model": "m"}, 10) == 3
    assert [item for block in range(3) for item in folder.items(block)] == listing.items
    assert folder.finished() == set()


def test_rows_and_rejects(tmp_path: Path, listing: Listing) -> None:
    folder = Folder(tmp_path / "out")
    folder.begin(listing, {}, 10)
    assert folder.write(2, SCHEMA, [{"key": "a"}, Rejected("b", None, "bad"), {"key": "c"}]) == (2, 1)
    assert folder.finished() == {2}
    assert folder.counts() == (2, 1)
    assert pq.read_table(folder.path / "rejects/00002.parquet").to_pylist() == [
        {"key": "b", "sha256": None, "error": "bad"}]
    assert files(folder.path) == ["input.parquet", "rejects/00002.parquet", "rows/00002.parquet", "run.json"]


def test_row_groups_are_bounded(tmp_path: Path, listing: Listing) -> None:
    folder = Folder(tmp_path / "out")
    folder.begin(listing, {}, 10)
    folder.write(0, SCHEMA, ({"key": str(number)} for number in range(2500)))
    about = pq.read_metadata(folder.path / "rows/00000.parquet")
    assert [about.row_group(index).num_rows for index in range(3)] == [1000, 1000, 500]


def test_a_block_is_written_whole_or_not_at_all(tmp_path: Path, listing: Listing) -> None:
    folder = Folder(tmp_path / "out")
    folder.begin(listing, {}, 10)

    def answers() -> Iterator[dict[str, str]]:
        yield {"key": "a"}
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        folder.write(0, SCHEMA, answers())
    assert files(folder.path) == ["input.parquet", "run.json"]


def test_what_a_killed_process_left_is_removed(tmp_path: Path, listing: Listing) -> None:
    folder = Folder(tmp_path / "out")
    folder.begin(listing, {}, 10)
    (folder.path / f"rows/{TEMPORARY}abc").write_text("half")
    folder.write(0, SCHEMA, iter([{"key": "a"}]))
    for block in (0, 1):  # it died after the first was finished, and in the second
        note_of(folder.path, block).write_text("{}")
    folder.begin(listing, {}, 10)
    assert files(folder.path) == [note_of(folder.path, 1).name, "input.parquet", "rejects/00000.parquet",
                                  "rows/00000.parquet", "run.json"]


def test_another_run_is_refused_with_what_changed(tmp_path: Path, listing: Listing) -> None:
    folder = Folder(tmp_path / "out")
    about = {"model": "abc", "work": {"op": "embed", "top": 5}}
    folder.begin(listing, about, 10)
    assert folder.begin(listing, about, 10) == 3
    changes = [({**about, "model": "def"}, listing, 10, 'model was "abc", is "def"'),
               ({**about, "work": {"op": "embed", "top": 3}}, listing, 10, "work.top was 5, is 3"),
               (about, Listing(listing.items[:-1], "other"), 10, "images was 25, is 24; input was .*, is \"other\""),
               (about, listing, 5, "block_size was 10, is 5"),
               ({**about, "model": "d" * 99}, listing, 10, f'model was "abc", is "{"d" * 40}…"'),
               ({**about, "model": ["e" * 99, "f"]}, listing, 10, rf'model was "abc", is \["{"e" * 40}…", …\]'),
               ({"model": "abc"}, listing, 10, "work.op was \"embed\", is not set")]
    for settings, other, size, told in changes:
        with pytest.raises(SpitError, match=f"holds another run: {told}.*; choose another --output"):
            folder.begin(other, settings, size)


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 9999])
def test_a_damaged_manifest(tmp_path: Path, listing: Listing, text: str) -> None:
    folder = Folder(tmp_path / "out")
    folder.begin(listing, {}, 10)
    (folder.path / "run.json").write_text(text)
    with pytest.raises(SpitError, match=r"run\.json: expected a file that spit batch wrote"):
        folder.begin(listing, {}, 10)


def test_a_folder_with_rows_of_something_else(tmp_path: Path, listing: Listing) -> None:
    (tmp_path / "rows").mkdir()
    with pytest.raises(SpitError, match=r"there is no run\.json beside rows"):
        Folder(tmp_path).begin(listing, {}, 10)


def test_the_default_size_depends_on_the_corpus_alone() -> None:
    assert [block_size(images) for images in (1, 60, 5_000, 20_000, 10**6)] == [16, 16, 78, 312, 1000]


def test_a_manifest_is_json(tmp_path: Path, listing: Listing) -> None:
    Folder(tmp_path / "out").begin(listing, {"work": {"sizes": (1, 2)}}, 10)
    Folder(tmp_path / "out").begin(listing, {"work": {"sizes": (1, 2)}}, 10)  # a tuple is a list there
    assert json.loads((tmp_path / "out/run.json").read_text())["images"] == 25
