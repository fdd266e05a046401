"""Photos to train on: folders and shards as one list, each photo squashed to a square."""

import hashlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset, get_worker_info

from spit.data.crops import central_square
from spit.data.folders import image_paths, refuse_parts
from spit.data.images import decode, load_image
from spit.data.shards import expand_pattern, index_shard, is_shard, read_member
from spit.errors import ImageError
from spit.interruption import leave_to_parent

Item = tuple[Tensor, float, int]
BAD_SHARE = 0.01
GAP = 2.0  # photos are reduced in fast steps to at least this many times their final side, then resized exactly
_log = logging.getLogger("spit")


class _Place(NamedTuple):
    """Where a photo is: a file below a folder, or bytes in a shard."""

    container: str
    name: str
    offset: int = -1
    size: int = -1


class Photos(Dataset[Item]):
    """A list of photos from any mix of folders and WebDataset shards.

    ``photos[i]`` is ``(image, aspect, label)``: the whole image squashed to a square, its width over its height, and
    its class or −1. The crop restores the aspect later, on the training device. An image that cannot be read is
    reported once and replaced by the next one; more than 1 % of them (and more than one) stop the run.

    Args:
        sources: folders, shards (``.tar``), or patterns of them: ``shards-{000..012}.tar``, ``part-*``.
        side: of the square.
        labelled: every photo must have a class: the sub-folder of the source; in a shard the text of ``key.cls``, or
            the folder in the member's name.
        classes: their names in order (default: those found, sorted). If all come from ``key.cls`` and are whole
            numbers, the number is the label.

    Shape:
        image ``(3, side, side)`` uint8.

    Raises:
        ImageError: a source is missing or has no image, or a photo has no class.
    """

    def __init__(self, sources: Sequence[str | PathLike[str]], side: int, labelled: bool = False,
                 classes: Sequence[str] | None = None) -> None:
        if not sources or isinstance(sources, str | PathLike):
            raise ValueError(f"expected a list of folders or shards, got {sources!r}")
        self.side = side
        self._places: list[_Place] = []
        found: list[str | None] = []
        numbered = True
        for path in (path for source in sources for path in expand_pattern(os.fspath(source))):
            if is_shard(path):
                for member in index_shard(path):
                    self._places.append(_Place(path, member.name, member.offset, member.size))
                    folder = PurePosixPath(member.name).parent.name or None
                    found.append(folder if member.label is None else member.label)
                    numbered = numbered and member.label is not None and member.label.isdecimal()
            else:
                numbered = False
                for file in image_paths(path):
                    parts = file.relative_to(path).parts
                    self._places.append(_Place(path, os.path.join(*parts)))
                    found.append(parts[0] if len(parts) > 1 else None)
        self.classes: list[str] = []
        if labelled:
            refuse_parts(sources[0], {name for name in found if name is not None})
        self.labels = torch.full((len(found),), -1)
        if labelled:
            self.classes, self.labels = self._number(found, numbered, classes)
        self.black = torch.zeros(3, side, side, dtype=torch.uint8)
        self.bad = torch.zeros(len(found), dtype=torch.bool).share_memory_()  # one for all worker processes

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> Item:
        for other in range(index, index + len(self)):
            place = other % len(self)
            if self.bad[place]:
                continue
            try:
                return (*squash(self.source(place), self.side, self.names(place)), int(self.labels[place]))
            except ImageError as error:
                if not self.refuse(place, error):
                    break
        return self.black, 1.0, -1  # the main process stops

    def names(self, index: int) -> str:
        """The path of a photo, for messages."""
        container, name, offset, _ = self._places[index]
        return os.path.join(container, name) if offset < 0 else f"{container}:{name}"

    def source(self, index: int) -> bytes | Path:
        """The file or its bytes, for :func:`spit.load_image`."""
        container, name, offset, size = self._places[index]
        return Path(container, name) if offset < 0 else read_member(container, offset, size)

    def refuse(self, index: int, error: ImageError) -> bool:
        """Record a photo that cannot be read; return whether the run may continue, or in the main process raise."""
        if not self.bad[index]:
            self.bad[index] = True
            _log.warning("%s (skipped)", error)
        if get_worker_info() is None:
            self.check()
        return int(self.bad.sum()) <= self._allowed

    def check(self) -> None:
        """Raise ImageError if too many photos could not be read: more than 1 %, and more than one."""
        bad = int(self.bad.sum())
        if bad > self._allowed:
            first = self.names(int(self.bad.nonzero()[0]))
            raise ImageError(f"{bad} of {len(self)} photos cannot be read, more than {BAD_SHARE:.0%}, {first} "
                             "among them; remove or replace them")

    @property
    def _allowed(self) -> int:
        return min(max(int(BAD_SHARE * len(self)), 1), len(self) - 1)

    def fingerprint(self) -> str:
        """A hash of the names of the photos, their order and their classes, but not of their folders."""
        digest = hashlib.sha256()
        for place, label in zip(self._places, self.labels.tolist(), strict=True):
            digest.update(f"{place.name}\0{place.size}\0{label}\n".encode(errors="surrogatepass"))
        return digest.hexdigest()[:16]

    def _number(self, found: list[str | None], numbered: bool,
                classes: Sequence[str] | None) -> tuple[list[str], Tensor]:
        if None in found:
            index = found.index(None)
            place = self._places[index]
            wanted = (f"{os.path.join(place.container, 'CLASS', place.name)} (or KEY.cls in a shard)"
                      if place.offset < 0 else "KEY.cls beside it in the shard")
            raise ImageError(f"{self.names(index)} has no class: expected {wanted}")
        names = [str(int(name)) if numbered else name for name in found if name is not None]
        if classes is None:
            classes = [str(i) for i in range(max(map(int, names)) + 1)] if numbered else sorted(set(names))
        numbers = {name: number for number, name in enumerate(classes)}
        for index, name in enumerate(names):
            if name not in numbers:
                raise ImageError(f"{self.names(index)}: expected one of the {len(classes)} classes {classes[0]} … "
                                 f"{classes[-1]}, got {name}; validation has the class names of training: "
                                 "rename the folder, or add such photos to the training data")
        return list(classes), torch.tensor([numbers[name] for name in names])


class Centres(Dataset[Item]):
    """The :func:`~spit.data.crops.central_square` of each photo, for evaluation.

    A photo that cannot be read is black with label −1, and not replaced by another.

    Args:
        crop: share of the resized short side; None rescales whole photos.

    Shape:
        image ``(3, side, side)`` uint8.
    """

    def __init__(self, photos: Photos, crop: float | None = 0.875) -> None:
        self.photos, self.crop = photos, crop

    def __getitem__(self, index: int) -> Item:
        try:
            image = load_image(self.photos.source(index))
        except ImageError as error:
            self.photos.refuse(index, error)
            return self.photos.black, 1.0, -1
        return central_square(image, self.photos.side, self.crop), 1.0, int(self.photos.labels[index])


def squash(source: bytes | Path, side: int, name: str | None = None) -> tuple[Tensor, float]:
    """A photo squashed to a square, and its width over its height; read as by :func:`spit.load_image`.

    A JPEG is decoded at its lowest resolution of at least twice the square's.

    Shape:
        ``(3, side, side)`` uint8.
    """
    pixels = decode(source, least=int(side * GAP), name=name)
    picture = Image.fromarray(pixels).resize((side, side), Image.Resampling.BICUBIC, reducing_gap=GAP)
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1).contiguous(), pixels.shape[1] / pixels.shape[0]


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
