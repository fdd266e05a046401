"""The square of an image that a classifier is evaluated on."""

import numpy as np
import torch
from PIL import Image
from torch import Tensor

LONGEST = 16  # an image longer than this many times its short side is cut before it is resized


def central_square(image: Tensor, size: int, crop: float | None = 0.875) -> Tensor:
    """Resize the short side to ``size / crop`` (256 for 224), bicubic, and cut the central square.

    Args:
        crop: None rescales the whole image to the square instead, without keeping its aspect.

    Shape:
        ``(3, H, W)`` uint8 to ``(3, size, size)`` uint8.
    """
    if crop is None:
        return _resize(image, size, size).contiguous()
    height, width = image.shape[1:]
    longest = LONGEST * min(height, width)  # only the centre is kept: a strip of 1 × 10⁸ needs no 256 × 10¹⁰ pixels
    top, left = max(height - longest, 0) // 2, max(width - longest, 0) // 2
    image = image[:, top : top + longest, left : left + longest]
    height, width = image.shape[1:]
    short = round(size / crop)
    scaled = _resize(image, int(short * width / min(height, width)), int(short * height / min(height, width)))
    left, top = round((scaled.shape[2] - size) / 2), round((scaled.shape[1] - size) / 2)
    return scaled[:, top : top + size, left : left + size].contiguous()


def _resize(image: Tensor, width: int, height: int) -> Tensor:
    picture = Image.fromarray(image.permute(1, 2, 0).contiguous().cpu().numpy())
    pixels = np.array(picture.resize((width, height), Image.Resampling.BICUBIC))
    return torch.from_numpy(pixels).permute(2, 0, 1)
