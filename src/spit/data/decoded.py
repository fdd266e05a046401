"""Decoded photos, in the memory of a device."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from spit.data.photos import Item, Photos
from spit.interruption import leave_to_parent


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


def _tracked(loader: "DataLoader[Item]") -> Iterator[list[Tensor]]:
    """The batches, behind a progress bar if stderr is a terminal and rich is installed."""
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield from loader
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(loader, "Decoding photos", console=Console(stderr=True), transient=True)
