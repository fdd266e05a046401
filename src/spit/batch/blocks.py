"""Blocks of work: the images of a run in files of Parquet, each written whole or not at all.

A run's folder::

    run.json                  what the rows depend on; another run is refused
    input.parquet             the listing, a row group for each block
    rows/00000.parquet        the answers of block 0; when it is there, the block is finished
    rejects/00000.parquet     the images of block 0 that failed, with the reason
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from spit.batch.arrow import pa, pq
from spit.batch.attempts import note_of
from spit.batch.operations import REJECTS, Rejected, Row
from spit.batch.sources import Item, Listing
from spit.documents import differences, read_json
from spit.errors import SpitError
from spit.files import TEMPORARY, replacing

GROUP = 1_000  # rows of a row group
LEAST = 16  # images of a block if there are few
SHARES = 64  # blocks that even a small corpus is divided into, so that all workers end at about the same time
MANIFEST, LISTING, ROWS, REJECTED = "run.json", "input.parquet", "rows", "rejects"


def block_size(images: int) -> int:
    """The default number of images in a block; it depends on the corpus alone."""
    return min(GROUP, max(LEAST, images // SHARES))


class Folder:
    """The output folder of a run.

    Args:
        path: it must be the same folder on every machine of a cluster.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, listing: Listing, about: Mapping[str, Any], size: int) -> int:
        """Start a run or go on with the one that is there; return the number of blocks.

        Raises:
            SpitError: the folder holds another run.
        """
        document = {"images": len(listing), "input": listing.digest, "block_size": size, **about}
        document = json.loads(json.dumps(document))
        if (self.path / MANIFEST).exists():
            self._compare(document)
        elif (self.path / ROWS).exists():
            raise SpitError(f"{self.path}: expected a new folder, or one with a run of spit batch, but there is no "
                            f"{MANIFEST} beside {ROWS}; choose another --output")
        else:
            for name in (ROWS, REJECTED):
                (self.path / name).mkdir(parents=True, exist_ok=True)
            with replacing(self.path / LISTING) as temporary:
                pq.write_table(listing.table(), temporary, row_group_size=size)
            with replacing(self.path / MANIFEST) as temporary:
                temporary.write_text(json.dumps(document, indent=2) + "\n")
        notes = (note_of(self.path, block) for block in self.finished())
        for left in (*self.path.glob(f"**/{TEMPORARY}*"), *notes):  # of a process that was killed
            left.unlink(missing_ok=True)
        return -(-len(listing) // size)

    def manifest(self) -> dict[str, Any]:
        """What the rows of the run depend on.

        Raises:
            SpitError: no run is there, or none that this version reads.
        """
        try:
            document = read_json((self.path / MANIFEST).read_bytes())
        except (OSError, ValueError) as error:
            raise SpitError(f"{self.path / MANIFEST}: expected a file that spit batch wrote, and that every machine of "
                            f"the cluster sees ({error})") from error
        if not isinstance(document, dict):
            raise SpitError(f"{self.path / MANIFEST}: expected a file that spit batch wrote")
        return document

    def items(self, block: int) -> list[Item]:
        """The images of a block."""
        with pq.ParquetFile(self.path / LISTING) as file:
            return [Item(**row) for row in file.read_row_group(block).to_pylist()]

    def finished(self) -> set[int]:
        """The blocks that are done."""
        return {int(path.stem) for path in (self.path / ROWS).glob("*.parquet") if path.stem.isdecimal()}

    def counts(self) -> tuple[int, int]:
        """Rows and rejects of all finished blocks."""
        rows, rejects = (sum(pq.read_metadata(self.path / folder / f"{block:05d}.parquet").num_rows
                             for block in self.finished()) for folder in (ROWS, REJECTED))
        return rows, rejects

    def write(self, block: int, schema: pa.Schema, answers: Iterable[Row | Rejected]) -> tuple[int, int]:
        """Write a block, a row group at a time; the answers are drawn one by one. Returns rows and rejects."""
        name = f"{block:05d}.parquet"
        rejects: list[Rejected] = []

        def rows() -> Iterator[Row]:
            for answer in answers:
                if isinstance(answer, Rejected):
                    rejects.append(answer)
                else:
                    yield answer

        count = 0
        with replacing(self.path / ROWS / name) as temporary:
            with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
                answered = rows()
                while group := list(islice(answered, GROUP)):
                    writer.write_table(pa.Table.from_pylist(group, schema))
                    count += len(group)
            # The rows come last: a block is finished when they are there.
            with replacing(self.path / REJECTED / name) as other:
                pq.write_table(pa.Table.from_pylist([one._asdict() for one in rejects], REJECTS), other)
        return count, len(rejects)

    def _compare(self, document: Mapping[str, Any]) -> None:
        changed = differences(self.manifest(), document)
        if changed:
            raise SpitError(f"{self.path} holds another run: {changed}; choose another --output, or remove it")
