"""Masks at the size of the original image, along superpixels of the original.

A model sees a large image at fewer pixels. Its mask, enlarged, has steps; here each superpixel of the original that the
steps cross goes to the side that has more of it. Only the tiles that the outline crosses are cut into superpixels, so
time and memory grow with the outline rather than with the image.
"""

from math import ceil, log

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from spit.tokenizers import SuperpixelTokenizer

TILE = 512  # side of a tile in pixels of the original
TOGETHER = 16  # tiles at once
MARGIN = 2  # pixels of the small mask around a tile that are looked at
SHARE = 4  # pixels of the small mask, at its size, that a superpixel has at most


def along_superpixels(image: Tensor, soft: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """A soft map and a mask of a reduced image at the size of the image itself.

    Args:
        image: the original, uint8 or floats in [0, 1].
        soft: in [0, 1], above 0.5 on the mask.
        mask: of the same size as ``soft``.

    Shape:
        image ``(C, H, W)``, soft and mask ``(h, w)``, to ``(H, W)`` float32 and bool.
    """
    height, width = image.shape[1:]
    ratio = max(height / mask.shape[0], width / mask.shape[1])
    tokenizer = SuperpixelTokenizer(levels=min(5, max(1, round(log(SHARE * max(ratio, 1.0) ** 2, 4)))))
    # Bilinear where the side is clear; the steps are smoothed before superpixels decide.
    large = F.interpolate(soft[None, None].float(), (height, width), mode="bilinear", align_corners=False)[0, 0]
    sides = large > 0.5
    crossed = []
    for top in _starts(height):
        for left in _starts(width):
            rows = _window(top, height, mask.shape[0])
            columns = _window(left, width, mask.shape[1])
            seen = mask[rows, columns]
            if bool(seen.any()) and not bool(seen.all()):
                crossed.append((slice(top, min(top + TILE, height)), slice(left, min(left + TILE, width))))
    for first in range(0, len(crossed), TOGETHER):
        places = crossed[first : first + TOGETHER]
        tiles = tokenizer(torch.stack([image[:, *place] for place in places])).blocks[0]
        for place, labels in zip(places, tiles, strict=True):
            _decide(large[place], sides[place], labels)
    return large, sides


def _starts(length: int) -> list[int]:
    """Where tiles begin: all have the same length, so the last may overlap the one before."""
    return [min(TILE * index, max(0, length - TILE)) for index in range(ceil(length / TILE))]


def _window(start: int, length: int, small: int) -> slice:
    """The pixels of the small mask under a tile, and a margin."""
    return slice(max(0, start * small // length - MARGIN), ceil(min(start + TILE, length) * small / length) + MARGIN)


def _decide(large: Tensor, sides: Tensor, labels: Tensor) -> None:
    """Give each superpixel on both sides to the larger one, in place."""
    regions, soft = labels.cpu().numpy().ravel(), large.cpu().numpy().ravel()
    sizes = np.bincount(regions)
    inside = np.bincount(regions, soft > 0.5)
    mean = np.bincount(regions, soft) / sizes
    mixed = ((inside > 0) & (inside < sizes))[regions]
    found = np.where(mixed, mean[regions], soft).astype(np.float32).reshape(labels.shape)
    large.copy_(torch.from_numpy(found))
    sides.copy_(torch.from_numpy(found > 0.5))
