"""How regions fit into a human's segments: achievable accuracy and undersegmentation error."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from spit.evaluation.superpixels.arrays import as_labels, check_same_size


def achievable_accuracy(labels: ArrayLike | Tensor, truth: ArrayLike | Tensor) -> float:
    """Achievable segmentation accuracy (ASA): the share of right pixels if each region takes its best segment.

        ASA = 1/P Σ_S max_G |S ∩ G|

    Shape:
        labels and truth ``(H, W)``.
    """
    overlaps = _overlaps(labels, truth)
    return float(overlaps.max(axis=1).sum() / overlaps.sum())


def undersegmentation_error(labels: ArrayLike | Tensor, truth: ArrayLike | Tensor) -> float:
    """Undersegmentation error as Neubert and Protzel (2012) corrected it, which Stutz et al. (2018) report:

        UE = 1/P Σ_G Σ_{S ∩ G ≠ ∅} min(|S ∩ G|, |S − G|)

    A region that straddles two segments leaks its smaller part into either. Smaller is better.

    Shape:
        labels and truth ``(H, W)``.
    """
    overlaps = _overlaps(labels, truth)
    outside = overlaps.sum(axis=1, keepdims=True) - overlaps  # |S − G|
    return float(np.minimum(overlaps, outside).sum() / overlaps.sum())


def _overlaps(labels: ArrayLike | Tensor, truth: ArrayLike | Tensor) -> NDArray[np.int64]:
    """|S ∩ G| as a table with a row for each region and a column for each segment."""
    regions, segments = as_labels(labels), as_labels(truth, "a truth")
    check_same_size(regions, segments, "a truth")
    columns = int(segments.max()) + 1
    table = np.bincount((regions * columns + segments).ravel(), minlength=(int(regions.max()) + 1) * columns)
    return table.reshape(-1, columns)
