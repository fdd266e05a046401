"""How much of an image's colour its regions explain."""

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from spit.evaluation.superpixels.arrays import as_colors, as_labels, check_same_size


def explained_variation(image: ArrayLike | Tensor, labels: ArrayLike | Tensor) -> float:
    """R², the explained variation of Moore et al. (2008); Table 5 of the paper:

        R² = Σ_S |S|·‖mean_S − mean‖² / Σ_p ‖x_p − mean‖²

    Both sums run over all channels. R² is 1 for an image of one colour, since there is nothing to explain.

    Args:
        image: RGB, uint8 or floats; a common scale of the channels does not matter.

    Shape:
        image ``(H, W, C)``, or a tensor ``(C, H, W)``; labels ``(H, W)``.
    """
    colors, regions = as_colors(image), as_labels(labels)
    check_same_size(regions, colors, "an image")
    flat, pixels = regions.ravel(), colors.reshape(regions.size, -1)
    centred = (pixels - pixels.mean(axis=0)).T  # (C, P)
    total = float((centred**2).sum())
    if total <= 1e-12 * max(float((pixels**2).sum()), 1e-300):  # rounding of the mean alone
        return 1.0
    sizes = np.bincount(flat)
    between = sum(float((np.bincount(flat, channel) ** 2 / sizes).sum()) for channel in centred)
    return between / total
