"""Journal: one JSON line for each answer, so that a stopped run resumes."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Record = dict[str, Any]


class Journal:
    """Answers by case and by the content of the sample; kept in a file if there is one.

    A case is a hash of everything that an answer depends on beside the sample, see :func:`case_of`. One file serves
    many runs: only what has changed is measured again. A last line that was cut short is dropped. Lines without a
    content key, which older versions wrote, are not used.

    Args:
        path: the file; None keeps answers in memory only.

    Raises:
        ValueError: the file has a line that no run wrote.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._records: dict[str, dict[str, Record]] = {}
        self._file = None
        self.earlier: dict[str, frozenset[str]] = {}  # for each case the keys that an earlier run answered
        if path is None:
            return
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                record = json.loads(line)
                case, _ = record["case"], record["image"]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}: expected lines that an earlier run wrote, got {line[:40]!r} in line "
                                 f"{number}; choose another --output or remove it") from error
            if "key" in record:
                self._records.setdefault(case, {})[record["key"]] = record
        self.earlier = {case: frozenset(records) for case, records in self._records.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("r+b" if data else "wb")
        self._file.truncate(self._file.seek(len(whole)))

    def records(self, case: str) -> Mapping[str, Record]:
        """The answers of a case so far, by key."""
        return self._records.setdefault(case, {})

    def add(self, case: str, records: Sequence[Record]) -> None:
        """Keep answers of a case; each has its ``key`` and its ``image``."""
        self._records.setdefault(case, {}).update({record["key"]: record for record in records})
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
    """The hash of all that an answer depends on beside the sample."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
