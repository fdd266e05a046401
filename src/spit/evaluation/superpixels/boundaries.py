"""Whether regions end where a human's segments end."""

from math import floor, hypot

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from spit.evaluation.libraries import library
from spit.evaluation.superpixels.arrays import as_labels, check_same_size

TOLERANCE = 0.0025  # of the diagonal


def boundary_pixels(labels: ArrayLike | Tensor) -> NDArray[np.bool_]:
    """The pixels with another label among their four neighbours, on both sides of a boundary.

    Shape:
        ``(H, W)`` integers; ``(H, W)`` bool.
    """
    segmentation = library("skimage.segmentation", "boundary recall")
    return np.asarray(segmentation.find_boundaries(as_labels(labels), mode="thick"), np.bool_)


def boundary_recall(labels: ArrayLike | Tensor, truth: ArrayLike | Tensor, radius: int | None = None) -> float:
    """The share of a truth's boundary pixels with a boundary pixel of the labels near them (Martin et al., 2004).

    Near is a square window of 2·radius + 1 pixels (Stutz et al., 2018). The recall is 1 if the truth has no boundary,
    since nothing was missed; Stutz's code says 0.

    Args:
        radius: in pixels (default: 0.0025 of the diagonal, rounded; 1 on BSDS500).

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
    """All pixels with one of the mask's in a square window around them."""
    ndimage = library("scipy.ndimage", "boundary recall")
    return np.asarray(ndimage.maximum_filter(mask, 2 * radius + 1, mode="constant"), np.bool_)


def recall(found: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> float:
    """The share of wanted pixels that were found; 1 if none is wanted."""
    total = np.count_nonzero(wanted)
    return np.count_nonzero(found & wanted) / total if total else 1.0
