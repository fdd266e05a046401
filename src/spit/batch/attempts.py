"""Detect images that end their worker, so that the next attempt rejects them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spit.documents import read_json
from spit.files import write_together

DEATHS = 2  # of workers with one image in hand, after which it is rejected


def note_of(output: Path, block: int) -> Path:
    """The file that is there while a block is in work."""
    return output / f".spit-attempt-{block:05d}.json"


class Attempts:
    """Earlier attempts at a block, from a file that is there only while the block is in work.

    If it is there at the start, a worker died with the block. The next one works image by image and notes each before
    it begins. An image with which :data:`DEATHS` workers died is rejected. Workers that die for other reasons, as when
    a machine is switched off, do not die twice with the same image.

    Attributes:
        failed: whether a worker died with this block before.
    """

    def __init__(self, output: Path, block: int) -> None:
        self._path = note_of(output, block)
        self._deaths: list[str] = []  # the image in hand of each worker that died
        self.failed = self._path.exists()
        with suppress(OSError, ValueError, TypeError):  # no file, or one that was cut short
            self._deaths = [str(key) for key in read_json(self._path.read_bytes())]

    def guilty(self, key: str) -> bool:
        """Whether an image is not to be tried again."""
        return self._deaths.count(key) >= DEATHS

    def note(self, *keys: str) -> None:
        """Write down which image is in hand."""
        write_together({self._path: json.dumps([*self._deaths, *keys]).encode()})

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keep the file while the block is in work."""
        self.note()
        try:
            yield
        finally:  # after an error too: only a worker that dies leaves it
            self._path.unlink(missing_ok=True)
