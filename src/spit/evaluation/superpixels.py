"""Metrics of superpixels, each for one image (Stutz et al., 2018).

An image is an array ``(H, W, C)`` or a tensor ``(C, H, W)``. Labels and truths are arrays or tensors ``(H, W)`` of any
integers.
"""

from collections.abc import Sequence
from math import floor, hypot, pi
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from spit.evaluation.libraries import library

Array = ArrayLike | Tensor
Labels = NDArray[np.int64]
Mask = NDArray[np.bool_]

TOLERANCE = 0.0025  # of the diagonal


def score(image: Array, labels: Array, truths: Sequence[Array]) -> dict[str, float]:
    """All metrics by name, of the 4-connected regions of the labels; against several truths the mean over them.

    ``labels`` counts the different labels, before they are split into connected regions.
    """
    if len(truths) == 0:
        raise ValueError("expected one truth or more, got none")
    given = as_labels(labels)
    regions = connected_regions(given)
    found = widen(boundary_pixels(regions), tolerance(regions.shape))
    return {
        "regions": int(regions.max()) + 1,
        "labels": int(given.max()) + 1,
        "explained_variation": explained_variation(image, regions),
        "achievable_accuracy": fmean(achievable_accuracy(regions, truth) for truth in truths),
        "undersegmentation_error": fmean(undersegmentation_error(regions, truth) for truth in truths),
        "boundary_recall": fmean(_recall(found, boundary_pixels(truth)) for truth in truths),
        "compactness": compactness(regions),
    }


def connected_regions(labels: Array) -> Labels:
    """Each 4-connected piece of one label as a region of its own, numbered from 0 in raster order.

    This is how Stutz et al. make methods comparable: a label whose pixels lie apart counts as often as it has pieces.
    """
    pieces = library("skimage.measure", "counting regions").label(as_labels(labels), background=-1, connectivity=1)
    return np.asarray(pieces, np.int64) - 1


def count_regions(labels: Array) -> int:
    """How many 4-connected regions a label map has."""
    return int(connected_regions(labels).max()) + 1


def explained_variation(image: Array, labels: Array) -> float:
    """R², the explained variation of Moore et al. (2008); Table 5 of the paper:

        R² = Σ_S |S|·‖mean_S − mean‖² / Σ_p ‖x_p − mean‖²

    Both sums run over all channels, whose common scale does not matter. R² is 1 for an image of one colour, since there
    is nothing to explain.
    """
    colors, regions = as_colors(image), as_labels(labels)
    _check_same_size(regions, colors, "an image")
    flat, pixels = regions.ravel(), colors.reshape(regions.size, -1)
    centred = (pixels - pixels.mean(axis=0)).T  # (C, P)
    total = float((centred**2).sum())
    if total <= 1e-12 * max(float((pixels**2).sum()), 1e-300):  # rounding of the mean alone
        return 1.0
    sizes = np.bincount(flat)
    return sum(float((np.bincount(flat, channel) ** 2 / sizes).sum()) for channel in centred) / total


def achievable_accuracy(labels: Array, truth: Array) -> float:
    """Achievable segmentation accuracy (ASA): the share of right pixels if each region takes its best segment.

        ASA = 1/P Σ_S max_G |S ∩ G|
    """
    overlaps = _overlaps(labels, truth)
    return float(overlaps.max(axis=1).sum() / overlaps.sum())


def undersegmentation_error(labels: Array, truth: Array) -> float:
    """Undersegmentation error as Neubert and Protzel (2012) corrected it, which Stutz et al. report:

        UE = 1/P Σ_G Σ_{S ∩ G ≠ ∅} min(|S ∩ G|, |S − G|)

    A region that straddles two segments leaks its smaller part into either. Smaller is better.
    """
    overlaps = _overlaps(labels, truth)
    outside = overlaps.sum(axis=1, keepdims=True) - overlaps  # |S − G|
    return float(np.minimum(overlaps, outside).sum() / overlaps.sum())


def boundary_recall(labels: Array, truth: Array, radius: int | None = None) -> float:
    """The share of a truth's boundary pixels with a boundary pixel of the labels near them (Martin et al., 2004).

    Near is a square window of 2·radius + 1 pixels. The recall is 1 if the truth has no boundary, since nothing was
    missed; Stutz's code says 0.

    Args:
        radius: in pixels (default: 0.0025 of the diagonal, rounded; 1 on BSDS500).
    """
    found, wanted = boundary_pixels(labels), boundary_pixels(truth)
    _check_same_size(found, wanted, "a truth")
    return _recall(widen(found, tolerance(found.shape) if radius is None else radius), wanted)


def compactness(labels: Array) -> float:
    """Compactness of Schick et al. (2012): the isoperimetric quotient of each region, weighted by its area:

        CO = 1/P Σ_S |S| · 4π|S| / L(S)²

    L(S) counts the pixel sides between S and its outside, the frame of the image included, as in Stutz's benchmark.
    The maximum is π/4 = .785, of a square; a line of pixels tends to 0.
    """
    regions = as_labels(labels)
    padded = np.pad(regions, 1, constant_values=-1)
    sides = np.sum([np.roll(padded, step, axis) != padded for axis in (0, 1) for step in (-1, 1)], axis=0)[1:-1, 1:-1]
    areas = np.bincount(regions.ravel()).astype(np.float64)
    perimeters = np.bincount(regions.ravel(), sides.ravel())
    return float((4 * pi * areas**2 / perimeters**2).sum() / regions.size)


def boundary_pixels(labels: Array) -> Mask:
    """The pixels with another label among their four neighbours, on both sides of a boundary."""
    segmentation = library("skimage.segmentation", "boundary recall")
    return np.asarray(segmentation.find_boundaries(as_labels(labels), mode="thick"), np.bool_)


def tolerance(shape: tuple[int, ...]) -> int:
    """The radius for an image of this size, halves rounded up as C's ``round`` does."""
    return floor(TOLERANCE * hypot(shape[0], shape[1]) + 0.5)


def widen(mask: Mask, radius: int) -> Mask:
    """All pixels with one of the mask's in a square window around them."""
    ndimage = library("scipy.ndimage", "boundary recall")
    return np.asarray(ndimage.maximum_filter(mask, 2 * radius + 1, mode="constant"), np.bool_)


def as_labels(labels: Array, name: str = "labels") -> Labels:
    """A label map as int64 whose labels are 0…V − 1, each in use; always a copy."""
    values = _as_array(labels)
    if values.ndim != 2 or values.size == 0 or values.dtype.kind not in "iub":
        raise ValueError(f"expected {name} of integers, (H, W), got {values.dtype} of {values.shape}")
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * values.size:  # too sparse for a table
        return np.unique(values, return_inverse=True)[1].reshape(values.shape).astype(np.int64)
    places = values.astype(np.int64) - low
    numbers: Labels = np.cumsum(np.bincount(places.ravel()) > 0) - 1
    return numbers[places]


def as_colors(image: Array) -> NDArray[np.float64]:
    """An image as ``(H, W, C)`` float64: uint8 becomes fractions of 255, floats stay."""
    values = _as_array(image)
    if values.ndim != 3:
        raise ValueError(f"expected an image of (H, W, C), or a tensor of (C, H, W), got {values.shape}")
    if isinstance(image, Tensor):
        values = np.moveaxis(values, 0, -1)
    return values.astype(np.float64) / (255 if values.dtype == np.uint8 else 1)


def _as_array(values: Array) -> NDArray[Any]:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def _check_same_size(first: NDArray[Any], second: NDArray[Any], name: str) -> None:
    if first.shape[:2] != second.shape[:2]:
        raise ValueError(f"expected {name} of the labels' size {first.shape[:2]}, got {second.shape[:2]}")


def _overlaps(labels: Array, truth: Array) -> NDArray[np.int64]:
    """|S ∩ G| as a table with a row for each region and a column for each segment."""
    regions, segments = as_labels(labels), as_labels(truth, "a truth")
    _check_same_size(regions, segments, "a truth")
    rows, columns = int(regions.max()) + 1, int(segments.max()) + 1
    return np.bincount((regions * columns + segments).ravel(), minlength=rows * columns).reshape(rows, columns)


def _recall(found: Mask, wanted: Mask) -> float:
    """The share of wanted pixels that were found; 1 if none is wanted."""
    total = np.count_nonzero(wanted)
    return np.count_nonzero(found & wanted) / total if total else 1.0
