"""Sums over regions and their borders by compiled loops; numbers of regions from 1, 0 is background."""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled


@compiled
def measure(numbers: Array, count: int, solid: bool) -> Any:
    """Pixels, sums of (z, y, x), boxes (z0, y0, x0, z1, y1, x1) and faces of each region; row 0 is background.

    Faces are the sides of pixels towards another region, the background or the outside of the map; those along z
    count only where the map is ``solid``.

    Shape:
        numbers ``(D, H, W)``; answers ``(count + 1,)``, ``(count + 1, 3)``, ``(count + 1, 6)``, ``(count + 1,)`` int64.
    """
    depth, height, width = numbers.shape
    sizes, faces = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    sums, boxes = np.zeros((count + 1, 3), np.int64), np.zeros((count + 1, 6), np.int64)
    boxes[:, 0], boxes[:, 1], boxes[:, 2] = depth, height, width
    for z in range(depth):
        for y in range(height):
            start = 0
            while start < width:  # a run of one region at a time
                v = numbers[z, y, start]
                end = start + 1
                while end < width and numbers[z, y, end] == v:
                    end += 1
                length = end - start
                sizes[v] += length
                sums[v, 0] += z * length
                sums[v, 1] += y * length
                sums[v, 2] += (start + end - 1) * length // 2
                boxes[v, 0], boxes[v, 3] = min(boxes[v, 0], z), z + 1
                boxes[v, 1], boxes[v, 4] = min(boxes[v, 1], y), max(boxes[v, 4], y + 1)
                boxes[v, 2], boxes[v, 5] = min(boxes[v, 2], start), max(boxes[v, 5], end)
                faces[v] += 2
                for x in range(start, end):
                    faces[v] += y == 0 or numbers[z, y - 1, x] != v
                    faces[v] += y == height - 1 or numbers[z, y + 1, x] != v
                    if solid:
                        faces[v] += z == 0 or numbers[z - 1, y, x] != v
                        faces[v] += z == depth - 1 or numbers[z + 1, y, x] != v
                start = end
    return sizes, sums, boxes, faces


@compiled
def band_statistics(numbers: Array, band: Array, sizes: Array) -> Any:
    """Mean and standard deviation of one band in each region, ``(count + 1,)`` float64; row 0 is background."""
    means, spreads = np.zeros(len(sizes)), np.zeros(len(sizes))
    for p in range(len(numbers)):
        means[numbers[p]] += band[p]
    means /= np.maximum(sizes, 1)
    for p in range(len(numbers)):
        spreads[numbers[p]] += (band[p] - means[numbers[p]]) ** 2
    return means, np.sqrt(spreads / np.maximum(sizes, 1))


def borders(numbers: Array, count: int) -> tuple[Array, Array]:
    """The pairs of regions that touch, the smaller first, in ascending order, and how many sides of pixels they share.

    Shape:
        numbers ``(H, W)`` or ``(D, H, W)``; answers ``(E, 2)`` and ``(E,)`` int64.
    """
    pairs, lengths = np.unique(_border_pairs(numbers.reshape(-1, *numbers.shape[-2:]), count), return_counts=True)
    return np.stack([pairs // (count + 1), pairs % (count + 1)], 1), lengths.astype(np.int64)


@compiled
def _border_pairs(numbers: Array, count: int) -> Any:
    """For each two neighbouring pixels of different regions, smaller number · (count + 1) + larger number."""
    depth, height, width = numbers.shape
    known = 0
    pairs = np.empty(0, np.int64)
    for fill in (False, True):
        if fill:
            pairs = np.empty(known, np.int64)
            known = 0
        for z in range(depth):
            for y in range(height):
                for x in range(width):
                    v = numbers[z, y, x]
                    if v == 0:
                        continue
                    for axis in range(3):
                        if (z, y, x)[axis] == 0:
                            continue
                        u = numbers[z - (axis == 0), y - (axis == 1), x - (axis == 2)]
                        if u == v or u == 0:
                            continue
                        if fill:
                            pairs[known] = np.int64(min(u, v)) * (count + 1) + max(u, v)
                        known += 1
    return pairs
