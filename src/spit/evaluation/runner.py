"""Runner: measures samples and keeps the answers, the same for every protocol.

A :class:`Protocol` has samples, cases and a table. A :class:`Case` is one way to answer, such as a model with a method
of attribution. The runner resumes from a :class:`Journal`, reads ahead, makes batches, warms up, times, and counts.
"""

import hashlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self

import torch

from spit import __version__
from spit.devices import PRECISIONS, autocast
from spit.documents import Sheet, read_json
from spit.errors import SpitError
from spit.evaluation.options import BATCHES
from spit.evaluation.report import Report
from spit.evaluation.samples import Sample
from spit.locks import locked
from spit.model import SpitModel
from spit.options import check_choice
from spit.predictor import Predictor

AHEAD = 2  # batches read ahead on a GPU; on a CPU, reading would slow the model that is being timed
THREADS = min(16, os.cpu_count() or 1)

Progress = Callable[[str, int, int], None]
Record = dict[str, Any]


class Case(ABC):
    """One way to answer for a sample; progress shows its name."""

    name: str

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Everything that an answer depends on beside the sample, as JSON has it."""

    @abstractmethod
    def measure(self, samples: Sequence[Sample], runner: "Runner") -> Generator[list[Record]]:
        """The answers, a batch at a time; each sample's once, in any order, with the sample's ``key``."""


def family_of(model: SpitModel) -> str:
    """The kind of a model's tokens in the paper's tables, or the name of other tokens."""
    return getattr(model.tokenizer, "family", "") or model.config.tokenizer


@dataclass(frozen=True)
class ModelCase(Case):
    """A model that answers in batches: read in threads, moved to the device, run and timed."""

    predictor: Predictor

    timed: ClassVar[bool] = True  # whether a first call, which compiles kernels, is made and not counted
    by_size: ClassVar[bool] = False  # whether images of one size go into a batch together
    batches: ClassVar[tuple[int, int]] = BATCHES

    def config(self) -> dict[str, Any]:
        """The weights, the model's config, and where it runs."""
        one = self.predictor
        return {"model": one.digest, "config": one.model.config.to_dict(), "size": one.size, "device": one.device.type}

    @abstractmethod
    def read(self, sample: Sample) -> Any:
        """What is in the sample's files."""

    @abstractmethod
    def prepare(self, loaded: list[Any]) -> Any:
        """The samples of a batch as :meth:`run` takes them, on the device."""

    @abstractmethod
    def run(self, batch: Any, runner: "Runner") -> Any:
        """The work that is timed."""

    def warm_up(self, batch: Any, runner: "Runner") -> None:
        """What runs before the first batch is timed: the same, which compiles."""
        self.run(batch, runner)

    @abstractmethod
    def records(self, found: Any, loaded: list[Any]) -> list[Record]:
        """What :meth:`run` found, a record for each sample."""

    def measure(self, samples: Sequence[Sample], runner: "Runner") -> Generator[list[Record]]:
        device = self.predictor.device
        if self.by_size:
            samples = sorted(samples, key=Sample.size)
        for number, (chunk, loaded) in enumerate(runner.read(samples, self.read, device, self.batches)):
            batch = self.prepare(loaded)
            with runner.autocast(device):
                if number == 0 and self.timed:
                    self.warm_up(batch, runner)
                _wait(device)
                start = time.perf_counter()
                found = self.run(batch, runner)
                _wait(device)
                seconds = round((time.perf_counter() - start) / len(chunk), 8)
            yield [{"key": sample.key, "image": sample.name, "model": self.predictor.name, **record, "seconds": seconds}
                   for sample, record in zip(chunk, self.records(found, loaded), strict=True)]


class Protocol(ABC):
    """An evaluation: what it measures, and the table that it makes.

    Attributes:
        title, notes: of the table.
        plots: whether its pictures need matplotlib.
        data, samples: a folder, and the samples of it that are measured.
        cases: what answers for every sample.
    """

    title: ClassVar[str]
    notes: ClassVar[str]
    plots: ClassVar[bool] = False
    cases: Sequence[Case]

    def __init__(self, data: Path, samples: Sequence[Sample], cases: Sequence[Any] = ()) -> None:
        self.data, self.samples, self.cases = data, samples, cases

    @property
    def total(self) -> int:
        """How many answers the rows need."""
        return len(self.samples) * len(self.cases)

    @abstractmethod
    def rows(self, runner: "Runner") -> list[Any]:
        """Measure; a dataclass for each row of the table."""

    @abstractmethod
    def sheets(self, rows: Sequence[Any]) -> list[Sheet]:
        """The rows as tables."""

    def notes_for(self, rows: Sequence[Any]) -> str:
        """What is said below the table."""
        return self.notes

    def settings(self, runner: "Runner") -> dict[str, Any]:
        """What the head of the table says beside data and machine."""
        return {}

    def about(self) -> dict[str, Any]:
        """What results.json says beside the rows and :meth:`settings`."""
        return {}

    def pictures(self, rows: Sequence[Any]) -> dict[str, bytes]:
        """Files of figures by name."""
        return {}


class Journal:
    """Answers by case and by the content of the sample; kept in a file, a JSON line for each, so that a run resumes.

    A case is a hash of everything that an answer depends on beside the sample, see :func:`case_of`. One file serves
    many runs, one at a time: only what has changed is measured again. A last line that was cut short is dropped. Lines
    without a content key, which older versions wrote, are not used.

    Args:
        path: the file; None keeps answers in memory only.

    Raises:
        SpitError: another process has the file open.
        ValueError: the file has a line that no run wrote.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._records: dict[str, dict[str, Record]] = {}
        self._file: BinaryIO | None = None
        self._open = ExitStack()
        self.earlier: dict[str, frozenset[str]] = {}  # for each case the keys that an earlier run answered
        if path is not None:
            with ExitStack() as opened:
                if not opened.enter_context(locked(path.with_name(f".{path.name}.lock"))):
                    raise SpitError(f"{path}: another evaluation is writing there; wait for it, or choose another "
                                    "--output")
                self._file = opened.enter_context(self._read(path))
                self._open = opened.pop_all()

    def _read(self, path: Path) -> BinaryIO:
        """The file, open at the end of its whole lines, which are read."""
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                record = read_json(line)
                case, _ = record["case"], record["image"]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}: expected lines that an earlier run wrote, got {line[:40]!r} in line "
                                 f"{number}; choose another --output or remove it") from error
            if "key" in record:
                self._records.setdefault(case, {})[record["key"]] = record
        self.earlier = {case: frozenset(records) for case, records in self._records.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("r+b" if data else "wb")
        file.truncate(file.seek(len(whole)))
        return file

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

    def __exit__(self, *error: Any) -> None:
        self._open.close()


def case_of(**parts: Any) -> str:
    """The hash of all that an answer depends on beside the sample."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class Runner:
    """Measures samples and keeps the answers.

    Args:
        journal: a file of answers to add to, and to resume from.
        progress: called with what is being done, answers so far, and answers in all.
        batch: images in a batch (default: the case's).
        precision: of the transformer: "fp32"; "bf16" on a GPU or a CPU with AVX512_BF16; "fp16" on a GPU.

    Attributes:
        done: answers so far.
        resumed: answers among them that an earlier run wrote.
    """

    def __init__(self, journal: Path | None = None, progress: Progress = lambda *_: None, batch: int | None = None,
                 precision: str = "fp32") -> None:
        check_choice("precision", precision, PRECISIONS)
        self.batch, self.precision = batch, precision
        self.done = self.resumed = self._total = 0
        self._journal = Journal(journal)
        self._progress = progress

    def evaluate(self, protocol: Protocol, pictures: bool = False) -> Report:
        """The report of a protocol, with its pictures if asked for.

        Raises:
            ImageError: a file cannot be read; what was measured before it is kept.
        """
        rows = self.rows(protocol)
        return Report(protocol.title, protocol.notes_for(rows), protocol.sheets(rows), str(protocol.data),
                      len(protocol.samples), protocol.settings(self), protocol.about(), rows,
                      protocol.pictures(rows) if pictures else {})

    def rows(self, protocol: Protocol) -> list[Any]:
        """The rows of a protocol."""
        self._total += protocol.total
        return protocol.rows(self)

    def answers(self, case: Case, samples: Sequence[Sample]) -> list[Record]:
        """The answers of a case for all samples, in order."""
        return list(self.stream(case, samples))

    def stream(self, case: Case, samples: Sequence[Sample], counted: bool = True) -> Generator[Record]:
        """The answers one by one, in order. Samples of equal content are measured once and answered each.

        Args:
            counted: whether they count as progress.
        """
        with ThreadPoolExecutor(THREADS) as pool:
            times = Counter(keys := list(pool.map(lambda sample: sample.key, samples)))
        name = case_of(**case.config(), precision=self.precision, spit=__version__)
        known, earlier = self._journal.records(name), self._journal.earlier.get(name, frozenset())
        missing = [*{key: sample for key, sample in zip(keys, samples, strict=True) if key not in known}.values()]
        if counted:
            self.resumed += sum(times[key] for key in times if key in earlier)
            self._advance(case.name, sum(times[key] for key in times if key in known))
        with closing(case.measure(missing, self)) as measured:
            for key in keys:
                while key not in known:
                    records = next(measured)
                    self._journal.add(name, records)
                    if counted:
                        self._advance(case.name, sum(times[record["key"]] for record in records))
                yield known[key]

    def say(self, doing: str) -> None:
        """Tell what is being done."""
        self._progress(doing, self.done, max(self._total, self.done))

    def read(self, samples: Sequence[Sample], read: Callable[[Sample], Any], device: torch.device,
             batches: tuple[int, int] = BATCHES) -> Iterator[tuple[Sequence[Sample], list[Any]]]:
        """Batches of samples with what is in their files; on a GPU the next two are read ahead."""
        size, ahead = self.batch or batches[device.type == "cuda"], AHEAD if device.type == "cuda" else 0
        waiting: deque[tuple[Sequence[Sample], list[Any]]] = deque()
        with ThreadPoolExecutor(THREADS) as pool:
            try:
                for start in range(0, len(samples) + ahead * size, size):
                    if chunk := samples[start : start + size]:
                        waiting.append((chunk, [pool.submit(read, sample) for sample in chunk]))
                    if start >= ahead * size and waiting:
                        chunk, files = waiting.popleft()
                        yield chunk, [file.result() for file in files]
            finally:
                pool.shutdown(cancel_futures=True)

    def autocast(self, device: torch.device) -> AbstractContextManager[Any]:
        """The precision as a context. Weights stay float32 in it, and tokens exact."""
        return autocast(device, self.precision)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._journal.__exit__(*error)

    def _advance(self, doing: str, answers: int) -> None:
        self.done += answers
        self.say(doing)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
