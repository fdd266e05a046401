"""How round regions are."""

from math import pi

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from spit.evaluation.superpixels.arrays import as_labels


def compactness(labels: ArrayLike | Tensor) -> float:
    """Compactness of Schick et al. (2012): the isoperimetric quotient of each region, weighted by its area:

        CO = 1/P Σ_S |S| · 4π|S| / L(S)²

    L(S) counts the pixel sides between S and its outside, the frame of the image included, as in Stutz's benchmark.
    The maximum is π/4 = .785, of a square; a line of pixels tends to 0.

    Shape:
        ``(H, W)``.
    """
    regions = as_labels(labels)
    flat = np.pad(regions, 1, constant_values=-1)
    inside = flat[1:-1, 1:-1]
    sides = sum((inside != neighbor).astype(np.int64) for neighbor in (
        flat[:-2, 1:-1], flat[2:, 1:-1], flat[1:-1, :-2], flat[1:-1, 2:]))
    areas = np.bincount(regions.ravel()).astype(np.float64)
    perimeters = np.bincount(regions.ravel(), np.asarray(sides).ravel())
    return float((4 * pi * areas**2 / perimeters**2).sum() / regions.size)
