"""A mask on its photo, to be read on dark and on bright ones."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from spit.drawing.pictures import DARK, LIGHT, as_picture, grow

HAZE = (118, 124, 148)  # a grey blue of medium brightness, which neither dark nor bright photos have much of
STRENGTH = 0.65  # of the haze over what is outside


def draw_mask(image: Tensor, mask: NDArray[np.bool_], thickness: int | None = None) -> Image.Image:
    """Draw an object in its own pixels, behind a double line, yellow and navy, and the rest grey in a haze.

    Args:
        image: uint8, or floats in [0, 1], of 1 or 3 channels.
        mask: where the object is.
        thickness: of each line in pixels (default: 1, and 1 more for every 800 pixels of the longer side).

    Shape:
        image ``(C, H, W)``, mask ``(H, W)``; the picture is W × H.
    """
    if mask.shape != tuple(image.shape[1:]):
        raise ValueError(f"expected a mask of this image's {tuple(image.shape[1:])} pixels, got {mask.shape}")
    picture = as_picture(image)
    pixels = np.array(picture)
    if thickness is None:
        thickness = 1 + max(mask.shape) // 800
    outside = ~mask
    grey = np.asarray(picture.convert("L"))
    levels = np.arange(256)[:, None] * (1 - STRENGTH) + np.array(HAZE) * STRENGTH
    pixels[outside] = np.rint(levels).astype(np.uint8)[grey[outside]]
    for width, color in ((2 * thickness, DARK), (thickness, LIGHT)):
        pixels[grow(mask, width) & outside] = color
    return Image.fromarray(pixels)
