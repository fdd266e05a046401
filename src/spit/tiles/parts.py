"""The first rounds of the tree in the parts of an image, each in a file of its own.

A part is a box of whole blocks (:data:`~spit.kernels.rules.BLOCK_SIDES`), within which these rounds stay, so that it
needs no pixel beyond its border, and parts may be grown in any order. A file holds what the rounds made of a part, and
a hash of all that they depend on: a run that was stopped reads the pixels of the parts again, but grows none twice.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from spit import __version__
from spit.bands import Bands, Space, raw_scale, sample_grid, valid_pixels
from spit.files import replacing
from spit.kernels import Array
from spit.kernels.numba.contraction import contract_edges
from spit.kernels.numba.tree import Blocks, grid_blocks
from spit.kernels.numba.tree_blocks import grid_edges
from spit.kernels.numba.tree_parts import cut_part, first_points
from spit.kernels.numba.tree_rounds import INFINITY
from spit.kernels.rules import BLOCK_SIDES
from spit.tiles.sources import Source, Window

Corner = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of an image.

    Attributes:
        source: the image.
        mask: pixels that belong to regions, with shape and slices; None for all.
        nodata: the value of pixels that do not.
        space: what is compared.
        weights: of the bands and the axes.
        undone: of so many merges at most, the highest, will be undone.
        sides: layers, rows and columns of a part.
        folder: for the files.
    """

    source: Source
    mask: Any
    nodata: float | None
    space: Space
    weights: Array
    undone: int
    sides: Corner
    folder: Path

    @cached_property
    def shape(self) -> Corner:
        """Layers, rows and columns of the image."""
        depth, height, width = (1, *self.source.shape)[-3:]
        return depth, height, width

    @cached_property
    def corners(self) -> list[Corner]:
        """The first point of every part, in raster order."""
        rows, columns, layers = ([*range(0, self.shape[axis], self.sides[axis])] for axis in (1, 2, 0))
        return [*product(layers, rows, columns)]

    @cached_property
    def scale(self) -> tuple[Array, float] | None:
        """See :func:`raw_scale`; that of :class:`Bands` for the whole image."""
        if self.space != "raw":
            return None
        values = self._values(sample_grid(self.source.bands, self.source.shape))
        if values.size == 0:
            values = np.concatenate([self._values(self.window(corner)) for corner in self.corners], 1)
        return raw_scale(values.astype(np.float64)) if values.size else (np.zeros(len(values)), 1.0)

    def window(self, corner: Corner) -> Window:
        """The slices of a part."""
        box = tuple(slice(first, min(first + side, end))
                    for first, side, end in zip(corner, self.sides, self.shape, strict=True))
        return box[-len(self.source.shape) :]

    def file(self, part: int) -> Path:
        """Where a part is."""
        return self.folder / f"part-{part:06d}.npz"

    def cut_file(self, part: int) -> Path:
        """Where the regions of a part are after a cut that goes through it."""
        return self.folder / f"cut-{part:06d}.npy"

    def grow(self, part: int) -> None:
        """Grow the regions of a part, if its file does not have them."""
        corner, bands = self.corners[part], self._bands(self.corners[part])
        key = self._key(corner, bands)
        try:
            with np.load(self.file(part)) as stored:
                if str(stored["key"]) == key:
                    return
        except (OSError, ValueError, KeyError, BadZipFile):  # none, or a damaged one
            pass
        blocks = self._blocks(corner, bands)
        edges = grid_edges(blocks.labels)
        edges = contract_edges(edges, np.arange(len(blocks.names), dtype=np.int32))  # without most repeats
        with replacing(self.file(part)) as path, path.open("wb") as file:
            np.savez(file, key=key, labels=blocks.labels, names=blocks.names, tops=blocks.tops, sums=blocks.sums,
                     edges=edges, firsts=self.firsts(part, blocks.labels, len(blocks.names)),
                     merges=highest(self._merges(part, blocks), self.undone),
                     pixels=np.count_nonzero(blocks.labels >= 0))

    def cut(self, part: int, cutoff: int) -> tuple[Array, Array]:
        """Regions of a part whose merges from a key on are undone, and the points they are named after.

        Shape:
            ``(D, H, W)`` int32, ``(V,)`` int64.
        """
        corner = self.corners[part]
        blocks = self._blocks(corner, self._bands(corner))
        regions, points = cut_part(blocks.parents, blocks.heights, blocks.labels, np.array(corner),
                                   np.array(self.shape), cutoff)
        return regions, points

    def firsts(self, part: int, labels: Array, count: int) -> Array:
        """The numbers in the image of the first points of regions of a part."""
        return self.numbers(part, first_points(labels.ravel(), count))

    def regions(self, part: int) -> Array:
        """The regions of a part after the cut, ``(D, H, W)`` int32, −1 outside."""
        if self.cut_file(part).exists():
            labels: Array = np.load(self.cut_file(part))
            return labels
        with np.load(self.file(part)) as stored:
            labels = stored["labels"]
        return labels

    def numbers(self, part: int, points: Array) -> Array:
        """The numbers in the image of points of a part."""
        corner = self.corners[part]
        sides = [min(side, end - first) for first, side, end in zip(corner, self.sides, self.shape, strict=True)]
        places = np.unravel_index(points, sides)
        numbers: Array = np.ravel_multi_index([place + first for place, first in zip(places, corner, strict=True)],
                                              self.shape)
        return numbers

    def _merges(self, part: int, blocks: Blocks) -> Array:
        """Keys of the merges in a part, see :func:`cut_part`."""
        heights = blocks.heights.ravel()
        points = np.flatnonzero(heights != INFINITY)
        if self.undone < len(points):  # without most of those that are not among the highest
            points = points[heights[points] >= highest(heights[points], max(self.undone, 1)).min()]
        return heights[points].astype(np.int64) << 32 | self.numbers(part, points)

    def _blocks(self, corner: Corner, bands: Bands) -> Blocks:
        return grid_blocks(bands.planes, self.weights, bands.mask, corner, self.shape)

    def _bands(self, corner: Corner) -> Bands:
        return Bands.converted(*self._read(self.window(corner)), self.space, self.scale)

    def _read(self, window: Window) -> tuple[Array, Array | None]:
        mask = None if self.mask is None else np.asarray(self.mask[window])
        return valid_pixels(self.source.read(window), self.source.channel_axis, mask, self.nodata)

    def _values(self, window: Window) -> Array:
        """The values of the pixels that count, ``(C, N)``."""
        pixels, inside = self._read(window)
        return pixels.reshape(len(pixels), -1) if inside is None else pixels[:, inside]

    def _key(self, corner: Corner, bands: Bands) -> str:
        about = [__version__, BLOCK_SIDES, self.shape, corner, bands.planes.shape, self.weights.tolist(), self.undone]
        digest = hashlib.blake2b(json.dumps(about).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(bands.planes).data)
        digest.update(b"" if bands.mask is None else np.ascontiguousarray(bands.mask).data)
        return digest.hexdigest()


def highest(keys: Array, count: int) -> Array:
    """The ``count`` highest keys, or all if there are fewer."""
    rest = len(keys) - count
    return keys if rest <= 0 else np.partition(keys, rest)[rest:] if count > 0 else keys[:0]
