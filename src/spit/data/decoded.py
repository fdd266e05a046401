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
from spit.files import remove_abandoned, replacing
from spit.interruption import leave_to_parent
from spit.locks import locked

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
            DataLoader(photos, batch_size=64, num_workers=workers, prefetch_factor=4 if workers else None,
                       worker_init_fn=leave_to_parent)):
        if isinstance(photos, Photos):
            photos.check()
        rows = slice(done, done + len(block))
        images[rows], aspects[rows], labels[rows] = block, block_aspects, block_labels
        done = rows.stop
    return images, aspects, labels


def kept_on_device(photos: Photos, device: torch.device | str, workers: int,
                   folder: Path | None) -> tuple[Tensor, Tensor, Tensor]:
    """As :func:`to_device`, but if there is a folder keep the decoded photos in it and read them next time.

    A file is named by :meth:`~spit.data.photos.Photos.stamp`, so one folder serves many data sets. Processes that need
    the same photos wait for the first to decode them. A square of side 192 takes 110 kB, and ``/dev/shm`` is fast.
    """
    if folder is None:
        return to_device(photos, device, workers)
    place = folder / f"{photos.stamp()}-{photos.side}.npy"
    with locked(place.with_suffix(".lock"), wait=True):
        if not place.exists():
            found = to_device(photos, device, workers)
            remove_abandoned(folder)
            _keep(place, *found)
            return found
    stored = np.load(place, mmap_mode="r")
    images = torch.empty(stored.shape, dtype=torch.uint8, device=device)
    _fill(images, stored)
    rest = np.load(place.with_suffix(".rest.npy"))
    return images, torch.from_numpy(rest[0]).float().to(device), torch.from_numpy(rest[1]).long().to(device)


def _keep(place: Path, images: Tensor, aspects: Tensor, labels: Tensor) -> None:
    """Write decoded photos: those that are read first come last."""
    with replacing(place.with_suffix(".rest.npy")) as temporary, temporary.open("wb") as file:
        np.save(file, torch.stack([aspects.double(), labels.double()]).cpu().numpy())
    with replacing(place) as temporary, temporary.open("wb") as file:  # written, not mapped: a full disk is an error
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": tuple(images.shape)})
        for start in range(0, len(images), PIECE):
            file.write(images[start : start + PIECE].cpu().numpy().data)


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
