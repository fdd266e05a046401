"""A mask on its photo, to be read on dark and on bright ones."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from spit.drawing.pictures import as_picture, grow

LIGHT = (255, 226, 64)  # the yellow line around the object
DARK = (16, 24, 64)  # the navy line around the yellow one
HAZE = (118, 124, 148)  # a grey blue of medium brightness, which neither dark nor bright photos have much of
STRENGTH = 0.65  # of the haze over what is outside


def draw_mask(image: Tensor, mask: NDArray[np.bool_], thickness: int | None = None) -> Image.Image:
    """Draw an object in its own pixels, behind a double line, yellow and navy, and the rest pale and grey.

    Args:
        image: uint8, or floats in [0, 1], of 1 or 3 channels.
        mask: where the object is.
        thickness: of each line in pixels (default: 1, and 1 more for every 1,200 pixels of the longer side).

    Shape:
        image ``(C, H, W)``, mask ``(H, W)``; the picture is W × H.
    """
    if mask.shape != tuple(image.shape[1:]):
        raise ValueError(f"expected a mask of this image's {tuple(image.shape[1:])} pixels, got {mask.shape}")
    if thickness is None:
        thickness = 1 + max(mask.shape) // 1200
    picture = as_picture(image)
    grey = picture.convert("L")
    drawn = Image.merge("RGB", [grey.point([round((1 - STRENGTH) * level + STRENGTH * haze) for level in range(256)])
                                for haze in HAZE])
    for width, color in ((2 * thickness, DARK), (thickness, LIGHT)):
        drawn.paste(color, mask=Image.fromarray(grow(mask, width)))
    drawn.paste(picture, mask=Image.fromarray(mask))
    return drawn
