"""A worker: one predictor, and blocks of work one after the other."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from spit.batch.attempts import Attempts
from spit.batch.blocks import Folder
from spit.batch.operations import Decoded, Operation, Rejected, Row
from spit.batch.options import Columns, Work
from spit.batch.sources import Item, Reader
from spit.drawing import encode_png
from spit.errors import ImageError, SpitError
from spit.predictor import Predictor, load
from spit.tokenizers import Tokenizer

PASS_PIXELS = 2**22  # pixels in a pass at most, if it has more than one image


@dataclass(frozen=True)
class Job:
    """All that a worker needs to know, on any machine."""

    inputs: tuple[str, ...]
    columns: Columns
    output: Path
    work: Work
    model: str
    size: int | None
    tokenizer: Tokenizer | None  # in place of the model's
    device: str
    batch: int
    decoders: int

    def predictor(self, device: str | None = None) -> Predictor:
        """The model, on its device or another one."""
        found = load(self.model, device or self.device, self.size)
        return found if self.tokenizer is None else found.with_tokenizer(self.tokenizer)


class Done(NamedTuple):
    """A finished block."""

    block: int
    rows: int
    rejects: int


class Worker:
    """Does blocks of a job and writes them.

    Args:
        job: what to do.
        predictor: the model, if it is loaded already.

    Raises:
        SpitError: this machine does not see the run's folder, or loads other weights.
    """

    def __init__(self, job: Job, predictor: Predictor | None = None) -> None:
        self.job, self.folder = job, Folder(job.output)
        self.operation = Operation(predictor or job.predictor(), job.work, job.size)
        self.reader = Reader(job.inputs, job.columns, job.work.max_bytes)
        self.pool = ThreadPoolExecutor(job.decoders, "spit-decoder")
        self.operation({"key": ["first"], "bytes": [encode_png(Image.new("RGB", (64, 64)))]})  # so that no row waits
        expected, got = self.folder.manifest()["model"], self.operation.predictor.digest
        if got != expected:
            raise SpitError(f"{job.model}: expected weights {expected}, as the run began with, got {got}")

    def __call__(self, block: int) -> Done:
        """Do one block: images are read and decoded by threads, a few passes ahead of the model."""
        attempts = Attempts(self.job.output, block)
        with attempts.at_work():
            items = self.folder.items(block)
            answers = self._one_by_one(items, attempts) if attempts.failed else self._answers(items)
            rows, rejects = self.folder.write(block, self.operation.schema, answers)
        return Done(block, rows, rejects)

    def _one_by_one(self, items: Sequence[Item], attempts: Attempts) -> Iterator[Row | Rejected]:
        """As :meth:`_answers` for a block whose worker died: what is noted before each image will tell which did it."""
        for item in items:
            if attempts.guilty(item.key):
                yield Rejected(item.key, None, f"{item.key}: its worker ended twice, for instance by lack of memory")
                continue
            attempts.note(item.key)
            yield from self._answers([item])

    def _answers(self, items: Sequence[Item]) -> Iterator[Row | Rejected]:
        images: list[Decoded] = []
        for one in self._loaded(items):
            if isinstance(one, Rejected):
                yield one
                continue
            pixels = sum(other.image[0].numel() for other in (*images, one))
            if images and (len(images) == self.job.batch or pixels > PASS_PIXELS):
                yield from self.operation.answer(images)
                images = []
            images.append(one)
        yield from self.operation.answer(images)

    def _loaded(self, items: Sequence[Item]) -> Iterator[Decoded | Rejected]:
        """Images in order, a bounded number of them in memory."""
        waiting: deque[Future[Decoded | Rejected]] = deque()
        for item in items:
            waiting.append(self.pool.submit(self._load, item))
            if len(waiting) > self.job.batch + self.job.decoders:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _load(self, item: Item) -> Decoded | Rejected:
        try:
            return self.operation.decode(item.key, self.reader(item))
        except (ImageError, MemoryError) as error:
            return Rejected(item.key, None, str(error) or "not enough memory to read it")
