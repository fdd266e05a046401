"""Images that end their worker: noted in a file, so that the next attempt finds and rejects them."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from spit.documents import read_json
from spit.files import TEMPORARY

DEATHS = 2  # of workers with one image in hand, after which it is rejected


def note_of(output: Path, block: int) -> Path:
    """The file that is there while a block is in work."""
    return output / f".spit-attempt-{block:05d}.json"


class Attempts:
    """What earlier attempts at a block have left: a file that is there only while the block is in work.

    If it is there at the start, a worker died with the block. The next one works image by image and notes each before
    it begins. An image with which :data:`DEATHS` workers died is rejected. Workers that die for other reasons, as when
    a machine is switched off, do not die twice with the same image.

    Attributes:
        failed: whether a worker died with this block before.
    """

    def __init__(self, output: Path, block: int) -> None:
        self._path = note_of(output, block)
        self._deaths: dict[str, int] = {}
        self.failed = self._path.exists()
        try:
            found = read_json(self._path.read_bytes())
            self._deaths = {str(key): int(count) for key, count in found["deaths"].items()}
            if found["image"] is not None:
                self._deaths[found["image"]] = self._deaths.get(found["image"], 0) + 1
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # none, or cut short
            pass

    def guilty(self, key: str) -> bool:
        """Whether an image is not to be tried again."""
        return self._deaths.get(key, 0) >= DEATHS

    def note(self, key: str | None) -> None:
        """Write down which image is in hand."""
        temporary = self._path.with_name(f"{TEMPORARY}{os.getpid()}")
        temporary.write_text(json.dumps({"image": key, "deaths": self._deaths}))
        os.replace(temporary, self._path)

    def __enter__(self) -> Self:
        self.note(None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._path.unlink(missing_ok=True)  # after an error too: only a worker that dies leaves it
