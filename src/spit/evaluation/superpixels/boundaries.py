"""Whether regions end where a human's segments end."""

from math import floor, hypot

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from spit.evaluation.superpixels.arrays import as_labels, check_same_size

TOLERANCE = 0.0025  # of the diagonal


def boundary_pixels(labels: ArrayLike | Tensor) -> NDArray[np.bool_]:
    """The pixels with another label among their four neighbours, on both sides of a boundary.

    The same as scikit-image's ``find_boundaries(labels, mode="thick")``.

    Shape:
        ``(H, W)`` integers; ``(H, W)`` bool.
    """
    regions = as_labels(labels)
    boundary = np.zeros(regions.shape, np.bool_)
    down = regions[1:] != regions[:-1]
    right = regions[:, 1:] != regions[:, :-1]
    boundary[1:] |= down
    boundary[:-1] |= down
    boundary[:, 1:] |= right
    boundary[:, :-1] |= right
    return boundary


def boundary_recall(labels: ArrayLike | Tensor, truth: ArrayLike | Tensor, radius: int | None = None) -> float:
    """The share of a truth's boundary pixels with a boundary pixel of the labels near them (Martin et al., 2004).

    Near is a square window of 2·radius + 1 pixels (Stutz et al., 2018). 1 where the truth has no boundary
    (Stutz's code says 0): nothing was missed.

    Args:
        radius: pixels; 0.0025 of the diagonal, rounded, unless told: 1 on BSDS500.

    Shape:
        labels and truth ``(H, W)``.
    """
    found, wanted = boundary_pixels(labels), boundary_pixels(truth)
    check_same_size(found, wanted, "a truth")
    return recall(widen(found, tolerance(found.shape) if radius is None else radius), wanted)


def tolerance(shape: tuple[int, ...]) -> int:
    """The radius for an image of this size, halves rounded up as C's ``round`` does."""
    return floor(TOLERANCE * hypot(shape[0], shape[1]) + 0.5)


def widen(mask: NDArray[np.bool_], radius: int) -> NDArray[np.bool_]:
    """All pixels with one of the mask's within a square window: one axis after the other."""
    wide = mask.copy()
    for axis in (0, 1):
        line, source = np.moveaxis(wide, axis, 0), np.moveaxis(wide.copy(), axis, 0)
        for step in range(1, min(radius, len(line) - 1) + 1):
            line[step:] |= source[:-step]
            line[:-step] |= source[step:]
    return wide


def recall(found: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> float:
    """The share of what is wanted that is found; 1 where nothing is wanted."""
    total = np.count_nonzero(wanted)
    return np.count_nonzero(found & wanted) / total if total else 1.0
