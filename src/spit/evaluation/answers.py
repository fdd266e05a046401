"""Models asked about many images: read, cropped, answered in batches, and kept image by image."""

import base64
import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from spit import __version__
from spit.data.crops import central_square
from spit.data.images import load_image
from spit.evaluation.labelled import LabelledFolder, LabelledImage
from spit.evaluation.lines import Lines, Record, case_of
from spit.model import SpitModel

PRECISIONS = ("fp32", "bf16")
RUNS = 5  # of a model whose tokens are random, with seeds 0 to 4, as the paper does for RViT
TOP = 5
THREADS = min(16, os.cpu_count() or 1)

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Setup:
    """How models are run: side of the central square, images in a batch, device, and precision of f."""

    size: int = 224
    batch: int = 32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    precision: str = "fp32"

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ValueError(f"expected a precision among {', '.join(PRECISIONS)}, got {self.precision!r}")
        if self.precision != "fp32" and self.device.type == "cpu":  # slower there, and some CPUs fail at it
            raise ValueError(f"{self.precision} is for a GPU; use fp32 on a CPU")

    def autocast(self) -> AbstractContextManager[Any]:
        """The precision, as a context; weights stay float32 in it and tokens exact."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")


@dataclass(frozen=True)
class Subject:
    """A model with a name, and a digest of its weights, which its variants share."""

    name: str
    model: SpitModel
    digest: str

    @staticmethod
    def of(name: str, model: SpitModel) -> "Subject":
        digest = hashlib.sha256()
        for key, tensor in model.state_dict().items():
            digest.update(key.encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        return Subject(name, model, digest.hexdigest()[:16])

    def with_tokenizer(self, tokenizer: str, **options: Any) -> "Subject":
        """The same weights with another τ."""
        return replace(self, model=self.model.with_tokenizer(tokenizer, **options))

    @property
    def runs(self) -> list["Subject"]:
        """Itself; or, where its tokens are random, itself with each of five seeds."""
        if self.model.config.tokenizer != "voronoi":
            return [self]
        return [self.with_tokenizer("voronoi", seed=seed) for seed in range(RUNS)]


@dataclass(frozen=True)
class Answer:
    """What a model says of one image.

    Attributes:
        top: the classes of the five largest logits, the largest first; all where there are fewer.
        tokens: how many the image was cut into.
        seconds: the model's, an image's share of its batch; reading and cropping are not in it.
        class_token: ``(D,)`` float32 where it was asked for.
    """

    top: tuple[int, ...]
    tokens: int
    seconds: float
    class_token: Tensor | None = None


class Examiner:
    """Asks models about folders and keeps what they say.

    Args:
        setup: how models are run.
        journal: a file of answers to add to, and to take up where an earlier run was stopped.
        progress: called with what is being done, images answered, and images in all.
    """

    def __init__(self, setup: Setup, journal: Path | None = None, progress: Progress = lambda *_: None) -> None:
        self.setup = setup
        self._lines = Lines(journal)
        self._progress = progress
        self._done = self._total = 0

    def expect(self, images: int) -> None:
        """Announce images to come, so that progress can tell how many are left."""
        self._total += images

    def ask(self, subject: Subject, folder: LabelledFolder, class_tokens: bool = False) -> list[Answer]:
        """The answers on all images of a folder, in order.

        Raises:
            ImageError: an image cannot be read; what was answered before it is kept.
        """
        case = case_of(model=subject.digest, config=subject.model.config.to_dict(), data=str(folder.root.resolve()),
                       size=self.setup.size, precision=self.setup.precision, device=self.setup.device.type,
                       class_tokens=class_tokens, spit=__version__)
        known = self._lines.records(case)
        missing = [image for image in folder.images if image.name not in known]
        self._advance(subject.name, len(folder.images) - len(missing))
        for number, (images, pixels) in enumerate(batches(missing, self.setup)):
            if number == 0:  # the first call compiles kernels and warms caches: it is not what a model takes
                _answers(subject.model, pixels, self.setup, class_tokens)
            answers = _answers(subject.model, pixels, self.setup, class_tokens)
            self._lines.add(case, [{"image": image.name, "model": subject.name, "label": folder.classes[image.label],
                                    **answer} for image, answer in zip(images, answers, strict=True)])
            self._advance(subject.name, len(images))
        known = self._lines.records(case)
        return [_answer(known[image.name]) for image in folder.images]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._lines.__exit__(*error)

    def _advance(self, doing: str, images: int) -> None:
        self._done += images
        self._progress(doing, self._done, max(self._total, self._done))


def batches(images: Sequence[LabelledImage], setup: Setup) -> Iterator[tuple[Sequence[LabelledImage], Tensor]]:
    """Images with their central squares, ``(B, 3, size, size)`` uint8, batch by batch.

    On a GPU two batches are read ahead. On a CPU none is: the model would share its cores with the reading,
    and its time would be wrong.
    """
    ahead = 2 if setup.device.type == "cuda" else 0
    waiting: deque[tuple[Sequence[LabelledImage], list[Any]]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for start in range(0, len(images), setup.batch):
                chunk = images[start : start + setup.batch]
                waiting.append((chunk, [pool.submit(_square, image, setup.size) for image in chunk]))
                if len(waiting) > ahead:
                    chunk, squares = waiting.popleft()
                    yield chunk, torch.stack([square.result() for square in squares])
            for chunk, squares in waiting:
                yield chunk, torch.stack([square.result() for square in squares])
        finally:
            pool.shutdown(cancel_futures=True)


def _square(image: LabelledImage, size: int) -> Tensor:
    return central_square(load_image(image.path), size)


@torch.inference_mode()
def _answers(model: SpitModel, pixels: Tensor, setup: Setup, class_tokens: bool) -> list[Record]:
    pixels = pixels.to(setup.device)
    _wait(setup.device)
    start = time.perf_counter()
    with setup.autocast():
        output = model(pixels, record=())
    _wait(setup.device)
    seconds = (time.perf_counter() - start) / len(pixels)
    classes = model.config.num_classes
    top = output.logits.float().topk(min(TOP, classes), dim=1).indices.tolist() if classes else [[] for _ in pixels]
    records = [{"top": best, "tokens": count, "seconds": round(seconds, 8)}
               for best, count in zip(top, output.partition.counts.tolist(), strict=True)]
    if class_tokens:
        for record, token in zip(records, output.class_token.float().cpu().numpy(), strict=True):
            record["class_token"] = base64.b64encode(token.astype("<f4").tobytes()).decode()
    return records


def _answer(record: Record) -> Answer:
    token = record.get("class_token")
    values = None if token is None else torch.from_numpy(np.frombuffer(base64.b64decode(token), "<f4").copy())
    return Answer(tuple(record["top"]), record["tokens"], record["seconds"], values)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
