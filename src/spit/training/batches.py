"""The photos of a step, as a function of the step alone, and their pixels.

The order of an epoch is a function of (seed, epoch). Epochs follow each other without a gap, and step ``s`` takes
positions ``s·B … (s + 1)·B − 1`` of that sequence. A run can start at any step without saved state, and each photo is
seen once an epoch whatever the batch.
"""

import hashlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from spit.data.photos import Photos, to_device
from spit.interruption import leave_to_parent
from spit.training.augment import AugmentConfig, Draw, apply, draw

AHEAD = 3  # steps that each decoding process prepares while one runs


@dataclass(frozen=True)
class Batch:
    """Photos of a step: pixels on the device, draws on the CPU. ``batch[a:b]`` is a part of them.

    Attributes:
        images: squashed to squares, or, :meth:`augmented`, what the model sees before CutMix.
        aspects: width over height of the originals.
        labels: −1 for none.
        draw: the random numbers: ``draw.mix(images)`` and ``draw.targets(labels, …)``.

    Shape:
        images ``(B, 3, side, side)`` uint8, aspects ``(B,)``, labels ``(B,)`` int64.
    """

    images: Tensor
    aspects: Tensor
    labels: Tensor
    draw: Draw

    def __len__(self) -> int:
        return len(self.draw)

    def __getitem__(self, rows: slice) -> "Batch":
        return Batch(self.images[rows], self.aspects[rows], self.labels[rows], self.draw[rows])

    def augmented(self, size: int, compiled: bool = False) -> "Batch":
        """The batch with crops, see :func:`spit.training.augment.apply`."""
        return replace(self, images=apply(self.images, self.aspects, self.draw, size, compiled))


class Batches:
    """The steps of a run.

    Args:
        batch: photos of a step, over all processes; even, since CutMix takes pairs.
        seed: of the order and of the augmentation.
        workers: decoding processes.
        resident: decode all photos once, into the memory of the device.
        whole: take whole photos as squares instead of crops.
    """

    def __init__(self, photos: Photos, batch: int, seed: int, device: torch.device | str = "cpu", workers: int = 0,
                 resident: bool = False, whole: bool = False) -> None:
        self.photos, self.batch, self.seed, self.workers, self.whole = photos, batch, seed, workers, whole
        self.device = torch.device(device)
        self.resident = to_device(photos, device, workers) if resident else None

    def steps(self, epochs: float) -> int:
        """The number of steps of so many epochs; at least one."""
        return max(round(epochs * len(self.photos) / self.batch), 1)

    def epoch(self, step: int) -> float:
        """The epochs before a step."""
        return step * self.batch / len(self.photos)

    def indices(self, step: int) -> Tensor:
        """The photos of a step, over all processes. Shape: ``(batch,)`` int64."""
        count, first = len(self.photos), step * self.batch
        epochs = range(first // count, (first + self.batch - 1) // count + 1)
        return torch.cat([_order(self.seed, epoch, count)[max(first - epoch * count, 0) :
                                                          first + self.batch - epoch * count] for epoch in epochs])

    def loads(self, augment: AugmentConfig, first: int, last: int, rows: slice) -> Generator[Batch, None, None]:
        """Rows ``rows`` of steps ``first`` to ``last − 1``; nothing waits for a GPU."""
        if self.whole:
            augment = replace(augment, scale=(1.0, 1.0), ratio=(1.0, 1.0))
        on_gpu = self.device.type == "cuda"
        lists = (self.indices(step)[rows].tolist() for step in range(first, last))
        pixels: Iterator[list[Tensor]] = iter(()) if self.resident is not None else iter(DataLoader(
            self.photos, batch_sampler=lists, num_workers=self.workers, pin_memory=on_gpu,
            prefetch_factor=AHEAD if self.workers else None, worker_init_fn=leave_to_parent))
        for step in range(first, last):
            generator = torch.Generator().manual_seed(mix_seed(self.seed, step, "augment"))
            drawn = draw(augment, self.batch, generator)[rows]
            if self.resident is None:
                tensors = [tensor.to(self.device, non_blocking=True) for tensor in next(pixels)]
                self.photos.check()
            else:
                chosen = self.indices(step)[rows]
                chosen = (chosen.pin_memory() if on_gpu else chosen).to(self.device, non_blocking=True)
                tensors = [tensor[chosen] for tensor in self.resident]
            images, aspects, labels = tensors
            yield Batch(images, torch.ones_like(aspects) if self.whole else aspects.float(), labels, drawn)


def mix_seed(*parts: int | str) -> int:
    """A 63-bit seed from several numbers and words."""
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


@lru_cache(maxsize=4)
def _order(seed: int, epoch: int, count: int) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(mix_seed(seed, epoch, "order")))
