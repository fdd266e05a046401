"""One JSON line for each image, so that a run that was killed goes on where it was."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Record = dict[str, Any]


class Lines:
    """Records by case and image; kept in a file where there is one.

    A case is a hash of all that an answer depends on beside the image, so that one file serves many runs:
    what was answered before is not asked again, and what has changed since is. A last line that was cut
    short is dropped.

    Args:
        path: the file; None keeps records in memory alone.

    Raises:
        ValueError: the file has a line that no run wrote.
    """

    def __init__(self, path: Path | None) -> None:
        self._records: dict[str, dict[str, Record]] = {}
        self._file = None
        if path is None:
            return
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                record: Record = json.loads(line)
                self._records.setdefault(record["case"], {})[record["image"]] = record
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}: expected lines that an earlier run wrote, got {line[:40]!r} in line "
                                 f"{number}; choose another --output or remove it") from error
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("r+b" if data else "wb")
        self._file.truncate(self._file.seek(len(whole)))

    def records(self, case: str) -> Mapping[str, Record]:
        """The records of a case so far, by the image's name."""
        return self._records.get(case, {})

    def add(self, case: str, records: Sequence[Record]) -> None:
        """Keep records of a case; each has its ``image``."""
        kept = self._records.setdefault(case, {})
        for record in records:
            kept[record["image"]] = record
        if self._file is not None:
            self._file.write(b"".join(json.dumps({"case": case, **record}).encode() + b"\n" for record in records))
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()


def case_of(**parts: Any) -> str:
    """The hash of all that an answer depends on beside the image."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
