"""Decoded photos, kept in a folder for the next run."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spit.data.photos import Photos, to_device

PIECE = 1024  # photos copied at a time
THREADS = min(8, os.cpu_count() or 1)


def kept_on_device(photos: Photos, device: torch.device | str, workers: int,
                   folder: Path) -> tuple[Tensor, Tensor, Tensor]:
    """As :func:`spit.data.photos.to_device`, but keep the decoded photos in a folder and read them next time.

    A file is named by :meth:`~spit.data.photos.Photos.fingerprint` and side, so one folder serves many data sets. It
    is written whole or not at all.

    Args:
        folder: created if missing; a square of side 192 takes 110 kB, and ``/dev/shm`` is fast.
    """
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
