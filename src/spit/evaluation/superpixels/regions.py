"""The regions that a label map really has: 4-connected pieces of one label."""

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from torch import Tensor

from spit.evaluation.superpixels.arrays import Labels, as_labels


def connected_regions(labels: ArrayLike | Tensor) -> Labels:
    """Each 4-connected piece of one label becomes a region of its own, numbered in raster order.

    This is how Stutz et al. (2018) make methods comparable: a label whose pixels lie apart counts as often
    as it has pieces.

    Shape:
        ``(H, W)`` integers; ``(H, W)`` int64, 0…V − 1.
    """
    return _pieces(as_labels(labels))


def count_regions(labels: ArrayLike | Tensor) -> int:
    """How many 4-connected regions a label map has."""
    return int(connected_regions(labels).max()) + 1


def is_connected(labels: ArrayLike | Tensor) -> bool:
    """Whether every label is one 4-connected region."""
    compact = as_labels(labels)
    return int(_pieces(compact).max()) == int(compact.max())


@njit(cache=True, nogil=True)
def _pieces(labels: Labels) -> Labels:
    """A pixel joins its northern and western neighbours of the same label; the first pixel is the root."""
    height, width = labels.shape
    root = np.empty(height * width, np.int64)
    for y in range(height):
        for x in range(width):
            p = y * width + x
            root[p] = p
            if x > 0 and labels[y, x - 1] == labels[y, x]:
                root[p] = _find(root, p - 1)
            if y > 0 and labels[y - 1, x] == labels[y, x]:
                a, b = _find(root, p - width), root[p]
                root[max(a, b)] = min(a, b)
                root[p] = min(a, b)
    pieces = np.empty((height, width), np.int64)
    flat = pieces.reshape(height * width)
    count = 0
    for p in range(height * width):
        if root[p] == p:
            flat[p] = count
            count += 1
        else:
            flat[p] = flat[root[p]]  # a root comes before all that lead to it
    return pieces


@njit(cache=True, nogil=True)
def _find(root: Labels, p: int) -> int:
    while root[p] != p:
        root[p] = root[root[p]]
        p = root[p]
    return p
