"""The regions that a label map really has: 4-connected pieces of one label."""

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from spit.evaluation.libraries import library
from spit.evaluation.superpixels.arrays import Labels, as_labels


def connected_regions(labels: ArrayLike | Tensor) -> Labels:
    """Each 4-connected piece of one label as a region of its own, numbered in raster order.

    This is how Stutz et al. (2018) make methods comparable: a label whose pixels lie apart counts as often as it has
    pieces.

    Shape:
        ``(H, W)`` integers; ``(H, W)`` int64, 0…V − 1.
    """
    pieces = library("skimage.measure", "counting regions").label(as_labels(labels), background=-1, connectivity=1)
    return np.asarray(pieces, np.int64) - 1


def count_regions(labels: ArrayLike | Tensor) -> int:
    """How many 4-connected regions a label map has."""
    return int(connected_regions(labels).max()) + 1
