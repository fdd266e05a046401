"""One JSON line for each measurement, so that a run that was stopped goes on where it was."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Key = tuple[str, int]  # method and count wanted


class Journal:
    """Measurements by method and wanted count; kept in a file where there is one.

    The first line says what the run is about; a journal of another run is refused. A later line on the
    same image replaces an earlier one. A last line that was cut short is dropped.

    Args:
        path: the file; None keeps measurements in memory alone.
        run: what must be the same for measurements to be comparable.
    """

    def __init__(self, path: Path | None, run: dict[str, Any]) -> None:
        self._records: dict[Key, dict[str, dict[str, Any]]] = {}
        self._base: dict[Key, float] = {}
        self._file = None
        if path is None:
            return
        whole = _whole_lines(path)
        if whole:
            first = _parse(whole[0], path)
            if first != run:
                other = next((key for key in run if first.get(key) != run[key]), "run")
                raise ValueError(f"{path} belongs to another run ({other}: {str(first.get(other))[:60]}, now "
                                 f"{str(run.get(other))[:60]}); choose another --output or remove it")
            for line in whole[1:]:
                record = _parse(line, path)
                self._keep((record.pop("method"), record.pop("wanted")), record)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("r+b" if whole else "wb")
        self._file.truncate(self._file.seek(sum(map(len, whole))))
        if not whole:
            self._write(run)

    def records(self, key: Key) -> dict[str, dict[str, Any]]:
        """The latest measurement of each image so far, by its name."""
        return self._records.get(key, {})

    def base(self, key: Key) -> float | None:
        """The parameter of the first measurement; None where there is none."""
        return self._base.get(key)

    def add(self, key: Key, record: dict[str, Any]) -> None:
        """Keep a measurement."""
        self._keep(key, record)
        self._write({"method": key[0], "wanted": key[1], **record})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()

    def _keep(self, key: Key, record: dict[str, Any]) -> None:
        self._base.setdefault(key, record["parameter"])
        self._records.setdefault(key, {})[record["image"]] = record

    def _write(self, document: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(document).encode() + b"\n")
            self._file.flush()


def _whole_lines(path: Path) -> list[bytes]:
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return lines if not lines or lines[-1].endswith(b"\n") else lines[:-1]


def _parse(line: bytes, path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}: expected lines of JSON that an earlier run wrote, got {line[:40]!r}; choose another "
                         "--output or remove it") from error
    return document
