"""Superpixels of one array, for those who come from scikit-image."""

from math import log
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from spit.tokenizers.superpixel import SuperpixelTokenizer

SWEEPS = 3
"""Of refinement: more gain little, docs/superpixels.md."""
GROWTH = 3.6
"""Pixels or regions that one level makes a region of, at the variance's own pace."""


def superpixels(image: npt.ArrayLike, n: int = 600, *, refine: int = SWEEPS, start_label: int = 1) -> npt.NDArray[Any]:
    """Label the superpixels of an image, as ``skimage.segmentation.slic`` does.

    Regions join where the squared error of their saturated colours grows least, level by level and, near n, in
    rounds that take the best eighth; then boundary pixels move where that lowers the error. For
    batches, tensors, GPUs, levels and all the choices use :class:`spit.SuperpixelTokenizer`.

    Args:
        image: ``(H, W)`` grey or ``(H, W, C)``; uint8, or floats in [0, 1]. Not modified.
        n: how many. Fewer come back where the image is hardly larger than that, or flat in wide areas, which
            are joined whole.
        refine: sweeps of boundary moves, 0 for none.
        start_label: the smallest label; ``skimage.measure.regionprops`` leaves 0 out.

    Shape:
        the answer is ``(H, W)`` int64, every label from ``start_label`` on, every region 4-connected.
    """
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3):
        raise ValueError(f"expected an image of shape (H, W) or (H, W, C), got {pixels.shape}")
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * 255
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"expected n, the number of superpixels, as a whole number of 1 or more, got {n!r}")
    channels_first = np.moveaxis(np.atleast_3d(pixels), -1, 0)
    tokenizer = SuperpixelTokenizer(
        levels=_levels(pixels.shape[0] * pixels.shape[1], int(n)),
        features="saturated" if channels_first.shape[0] in (1, 3) else "paper",
        similarity="variance",
        self_loop="none",
        max_tokens=int(n),
        refine=refine,
    )
    part = tokenizer(torch.from_numpy(np.ascontiguousarray(channels_first)))
    return part.blocks[0][0].numpy().astype(np.int64) + start_label


def _levels(pixels: int, n: int) -> int:
    """As many as leave about three times n regions or more for the rounds."""
    return max(int(log(max(pixels / (3 * n), 1)) / log(GROWTH)), 1)
