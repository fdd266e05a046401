"""Which photos a step sees, as a function of the step alone, and their pixels.

The order of an epoch is a function of (seed, epoch); epochs follow each other without a gap, and step
``s`` takes positions ``s·B … (s + 1)·B − 1`` of that endless row. So no state is kept: a run begins at
any step for nothing, and every photo is seen once an epoch whatever the batch.
"""

import hashlib
import queue
import threading
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from spit.data.decoded import kept_on_device
from spit.data.photos import Item, Photos, to_device
from spit.training.augment import AugmentConfig, Draw, draw

Host = tuple[Tensor, list[Tensor], Draw]
AHEAD = 3  # steps that are made ready while one runs


@dataclass(frozen=True)
class Load:
    """A process's part of a step, before augmentation: pixels on the device, draws on the CPU.

    Shape:
        photos ``(B, 3, side, side)`` uint8, aspects ``(B,)``, labels ``(B,)`` int64.
    """

    photos: Tensor
    aspects: Tensor
    labels: Tensor
    draw: Draw


class Batches:
    """The steps of a run.

    Args:
        photos: what to draw from.
        batch: photos in a step, over all processes together.
        seed: of the order and of the augmentation.
        device: where the pixels go.
        workers: processes that decode.
        resident: decode everything once, into memory of the device, rather than again at each use.
        kept: with resident, a folder where what was decoded is kept for the next run.

    Raises:
        ValueError: an odd batch, whose last photo would have no partner for CutMix.
    """

    def __init__(self, photos: Photos, batch: int, seed: int, device: torch.device | str = "cpu", workers: int = 0,
                 resident: bool = False, kept: Path | None = None) -> None:
        if batch < 2 or batch % 2:
            raise ValueError(f"expected an even batch of at least 2 photos, which CutMix takes in pairs, got {batch}")
        self.photos = photos
        self.batch = batch
        self.seed = seed
        self.device = torch.device(device)
        self.workers = workers
        self.resident: tuple[Tensor, Tensor, Tensor] | None = None
        if resident:
            self.resident = (to_device(photos, device, workers) if kept is None
                             else kept_on_device(photos, device, workers, kept))

    def steps(self, epochs: float) -> int:
        """How many steps so many epochs are; at least one."""
        return max(round(epochs * len(self.photos) / self.batch), 1)

    def epoch(self, step: int) -> float:
        """How often each photo has been seen before a step."""
        return step * self.batch / len(self.photos)

    def indices(self, step: int) -> Tensor:
        """The photos of a step, of all processes. Shape: ``(batch,)`` int64."""
        count, first = len(self.photos), step * self.batch
        epochs = range(first // count, (first + self.batch - 1) // count + 1)
        return torch.cat([_order(self.seed, epoch, count)[max(first - epoch * count, 0) :
                                                          first + self.batch - epoch * count] for epoch in epochs])

    def loads(self, augment: AugmentConfig, first: int, last: int, rows: slice) -> Generator[Load, None, None]:
        """The rows ``rows`` of steps ``first`` to ``last − 1``, made ready a few steps ahead.

        Copies to a GPU do not wait for it; nor does the caller.
        """
        # Worker processes start here, in the caller's thread: no other one holds a lock that they would inherit.
        pixels = iter(self._decoder(first, last, rows)) if self.resident is None else None
        with _Ahead(self._host(augment, first, last, rows, pixels)) as ready:
            for chosen, decoded, drawn in ready:
                if self.resident is not None:
                    where = chosen.to(self.device, non_blocking=True)
                    photos, aspects, labels = (tensor[where] for tensor in self.resident)
                else:
                    self.photos.check()
                    photos, aspects, labels = (tensor.to(self.device, non_blocking=True) for tensor in decoded)
                yield Load(photos, aspects.float(), labels, drawn)

    def _host(self, augment: AugmentConfig, first: int, last: int, rows: slice,
              pixels: Iterator[list[Tensor]] | None) -> Iterator[Host]:
        """On the CPU: the photos' places, their pixels where these are not resident, and the draws."""
        for step in range(first, last):
            generator = torch.Generator().manual_seed(mix_seed(self.seed, step, "augment"))
            drawn = draw(augment, self.batch, generator)[rows]
            chosen = self.indices(step)[rows]
            if self.device.type == "cuda":
                chosen = chosen.pin_memory()
            yield chosen, [] if pixels is None else next(pixels), drawn

    def _decoder(self, first: int, last: int, rows: slice) -> "DataLoader[Item]":
        return DataLoader(self.photos, batch_sampler=_Lists(self, first, last, rows), num_workers=self.workers,
                          pin_memory=self.device.type == "cuda", prefetch_factor=AHEAD if self.workers else None)


class _Lists:
    """The photos of each step as lists, which is how a DataLoader asks."""

    def __init__(self, batches: Batches, first: int, last: int, rows: slice) -> None:
        self.batches, self.first, self.last, self.rows = batches, first, last, rows

    def __len__(self) -> int:
        return self.last - self.first

    def __iter__(self) -> Iterator[list[int]]:
        for step in range(self.first, self.last):
            yield self.batches.indices(step)[self.rows].tolist()


class _Ahead:
    """Runs an iterator in a thread, a few items ahead of who takes them."""

    def __init__(self, items: Iterator[Host]) -> None:
        self._items = items
        self._queue: queue.Queue[Host | BaseException | None] = queue.Queue(AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> "_Ahead":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        while self._thread.is_alive():
            with suppress(queue.Empty):
                self._queue.get(timeout=0.05)

    def __iter__(self) -> Iterator[Host]:
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def _work(self) -> None:
        try:
            for item in self._items:
                self._queue.put(item)
                if self._stopped.is_set():
                    return
            self._queue.put(None)
        except BaseException as error:  # raised again where the items are taken
            self._queue.put(error)


def mix_seed(*parts: int | str) -> int:
    """One 63-bit seed for several numbers and words; any other of them gives another seed."""
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


@lru_cache(maxsize=4)
def _order(seed: int, epoch: int, count: int) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(mix_seed(seed, epoch, "order")))

