"""Sample: an image file and the files of its truth, known by their content."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from PIL import Image

from spit.data.folders import image_paths

Item = TypeVar("Item")


@dataclass(frozen=True)
class Sample:
    """An image to measure.

    Attributes:
        name: path below the data folder, for tables and messages.
        image: the image file.
        truths: files that its answer is compared with: a mask, or segmentations.
        label: its class, as an index into the classes of its folder.
    """

    name: str
    image: Path
    truths: tuple[Path, ...] = ()
    label: int = 0

    @cached_property
    def key(self) -> str:
        """A hash of the bytes of all its files. Names, paths and times do not change it."""
        digests = [hashlib.sha256(path.read_bytes()).digest() for path in (self.image, *self.truths)]
        return hashlib.sha256(b"".join(digests)).hexdigest()[:32]

    def size(self) -> tuple[int, int]:
        """Width and height according to the file's header; 0, 0 if it cannot be read."""
        try:
            with Image.open(self.image) as image:
                return image.size
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return 0, 0


def find_images(root: str | Path) -> list[Sample]:
    """All images of a folder, at any depth.

    Raises:
        ImageError: no such folder, or no images.
    """
    return [Sample(path.relative_to(root).as_posix(), path) for path in image_paths(root)]


def spread(items: Sequence[Item], count: int | None) -> list[Item]:
    """At most ``count`` items, evenly spaced; None for all."""
    if count is None or count >= len(items):
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]
