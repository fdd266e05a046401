"""The square of an image that a classifier is evaluated on."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

if TYPE_CHECKING:
    from torch import Tensor

LONGEST = 16  # an image longer than this many times its short side is cut before it is resized


def central_square(image: "Tensor", size: int, crop: float | None = 0.875) -> "Tensor":
    """:func:`central_pixels` of a tensor.

    Shape:
        ``(3, H, W)`` uint8 to ``(3, size, size)`` uint8.
    """
    import torch  # not at the top: spit.runtime crops without it

    pixels = central_pixels(image.permute(1, 2, 0).contiguous().cpu().numpy(), size, crop)
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def central_pixels(image: NDArray[np.uint8], size: int, crop: float | None = 0.875) -> NDArray[np.uint8]:
    """Resize the short side to ``size / crop`` (256 for 224), bicubic, and cut the central square.

    Args:
        crop: None rescales the whole image to the square instead, without keeping its aspect.

    Shape:
        ``(H, W, 3)`` uint8 to ``(size, size, 3)`` uint8.
    """
    if crop is None:
        return _resize(image, size, size)
    height, width = image.shape[:2]
    longest = LONGEST * min(height, width)  # only the centre is kept: a strip of 1 × 10⁸ needs no 256 × 10¹⁰ pixels
    top, left = max(height - longest, 0) // 2, max(width - longest, 0) // 2
    image = image[top : top + longest, left : left + longest]
    height, width = image.shape[:2]
    short = round(size / crop)
    scaled = _resize(image, int(short * width / min(height, width)), int(short * height / min(height, width)))
    left, top = round((scaled.shape[1] - size) / 2), round((scaled.shape[0] - size) / 2)
    return scaled[top : top + size, left : left + size]


def _resize(image: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    return np.array(Image.fromarray(image).resize((width, height), Image.Resampling.BICUBIC))
