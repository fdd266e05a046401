"""Regions of a part of a grid that is larger than memory, see :mod:`spit.tiles`."""

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled

U = np.uint64


@compiled
def first_points(labels: Array, count: int) -> Array:
    """The number of the first point of every region, ``(count,)``; labels ``(P,)``, −1 for none."""
    firsts = np.full(count, -1, np.int32)
    for p in range(len(labels)):
        if labels[p] >= 0 and firsts[U(labels[p])] < 0:
            firsts[U(labels[p])] = p
    return firsts


@compiled
def cut_part(parents: Array, heights: Array, labels: Array, corner: Array, whole: Array,
             cutoff: int) -> tuple[Array, Array]:
    """Undo the merges of a part whose keys are at least ``cutoff``: its regions, and the points they are named after.

    A key is a merge's height as bits, with the name that is gone in its lower half. Points are numbered in the part.

    Shape:
        parents, heights and labels ``(D, H, W)`` of :func:`grid_blocks`, corner and whole ``(3,)`` int64; regions
        ``(D, H, W)`` int32, −1 where labels are, points ``(V,)`` int32.
    """
    depth, height, width = labels.shape
    roots, numbers = np.empty(labels.size, np.int32), np.full(labels.size, -1, np.int32)
    p = 0
    for z in range(depth):
        for y in range(height):
            for x in range(width):
                name = ((corner[0] + z) * whole[1] + corner[1] + y) * whole[2] + corner[2] + x
                roots[p] = p
                if (np.int64(heights[z, y, x]) << 32 | name) < cutoff:
                    row, column = divmod(np.int64(parents[z, y, x]), whole[2])
                    layer, row = divmod(row, whole[1])
                    roots[p] = ((layer - corner[0]) * height + row - corner[1]) * width + column - corner[2]
                p += 1
    moved = 1
    while moved > 0:  # a pointer only ever gets nearer to its root
        moved = 0
        for p in range(len(roots)):
            to = roots[p]
            roots[p] = roots[to]
            moved += roots[p] != to
    regions, points, count = np.empty(labels.size, np.int32), np.empty(labels.size, np.int32), 0
    inside = labels.reshape(-1)
    for p in range(len(roots)):
        root = roots[p]
        if inside[p] >= 0 and numbers[root] < 0:
            numbers[root] = count
            points[count] = root
            count += 1
        regions[p] = numbers[root]
    return regions.reshape(labels.shape), points[:count]
