"""Decoded photos, in the memory of a device and kept in a folder for the next run."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from spit.data.photos import Item, Photos

PIECE = 1024  # photos copied at a time
THREADS = min(8, os.cpu_count() or 1)


def to_device(photos: "Photos | Subset[Item]", device: torch.device | str,
              workers: int) -> tuple[Tensor, Tensor, Tensor]:
    """Decode all photos once, into the memory of the device: 270,000 photos of side 192 take 30 GB.

    Shape:
        ``(N, 3, side, side)`` uint8, ``(N,)`` float32 aspects, ``(N,)`` int64 labels.
    """
    total, side = len(photos), photos[0][0].shape[-1]
    images = torch.empty(total, 3, side, side, dtype=torch.uint8, device=device)
    aspects = torch.empty(total, device=device)
    labels = torch.empty(total, dtype=torch.int64, device=device)
    done = 0
    for block, block_aspects, block_labels in _tracked(
            DataLoader(photos, batch_size=64, num_workers=workers, prefetch_factor=4 if workers else None)):
        if isinstance(photos, Photos):
            photos.check()
        rows = slice(done, done + len(block))
        images[rows], aspects[rows], labels[rows] = block, block_aspects, block_labels
        done = rows.stop
    return images, aspects, labels


def kept_on_device(photos: Photos, device: torch.device | str, workers: int,
                   folder: Path | None) -> tuple[Tensor, Tensor, Tensor]:
    """As :func:`to_device`, but if there is a folder keep the decoded photos in it and read them next time.

    A file is named by :meth:`~spit.data.photos.Photos.fingerprint` and side, so one folder serves many data sets. It
    is written whole or not at all. A square of side 192 takes 110 kB, and ``/dev/shm`` is fast.
    """
    if folder is None:
        return to_device(photos, device, workers)
    place = folder / f"{photos.fingerprint()}-{photos.side}.npy"
    if place.exists():
        stored = np.load(place, mmap_mode="r")
        images = torch.empty(stored.shape, dtype=torch.uint8, device=device)
        _fill(images, stored)
        rest = np.load(place.with_suffix(".rest.npy"))
        return images, torch.from_numpy(rest[0]).float().to(device), torch.from_numpy(rest[1]).long().to(device)
    images, aspects, labels = to_device(photos, device, workers)
    folder.mkdir(parents=True, exist_ok=True)
    rest = torch.stack([aspects.double(), labels.double()]).cpu().numpy()
    partial = place.with_suffix(".part.npy")
    np.save(partial, rest)
    partial.rename(place.with_suffix(".rest.npy"))
    stored = np.lib.format.open_memmap(partial, mode="w+", dtype=np.uint8, shape=tuple(images.shape))
    for start in range(0, len(images), PIECE):
        stored[start : start + PIECE] = images[start : start + PIECE].cpu().numpy()
    stored.flush()
    partial.rename(place)
    return images, aspects, labels


def _fill(images: Tensor, stored: NDArray[np.uint8]) -> None:
    """Copy stored photos to the device, through pinned memory for a GPU."""

    def copy(start: int) -> None:
        part = images[start : start + PIECE]
        buffer = torch.empty(part.shape, dtype=torch.uint8, pin_memory=part.is_cuda)
        np.copyto(buffer.numpy(), stored[start : start + PIECE])
        part.copy_(buffer)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(copy, range(0, len(stored), PIECE)))


def _tracked(loader: "DataLoader[Item]") -> Iterator[list[Tensor]]:
    """The batches, behind a progress bar if stderr is a terminal and rich is installed."""
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield from loader
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(loader, "Decoding photos", console=Console(stderr=True), transient=True)
