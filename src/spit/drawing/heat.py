"""Colours of heat maps, from dark (low) to bright (high)."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

ANCHORS = ((0, 0, 4), (40, 11, 84), (101, 21, 110), (159, 42, 99), (212, 72, 66), (245, 125, 21), (250, 193, 39),
           (252, 255, 164))  # matplotlib's inferno


def heat_colors(level: NDArray[np.float64]) -> NDArray[np.float64]:
    """Levels in [0, 1] as colours between the anchors, ``(H, W)`` to ``(H, W, 3)`` in 0…255."""
    places = np.linspace(0, 1, len(ANCHORS))
    return np.stack([np.interp(level, places, channel) for channel in np.array(ANCHORS, np.float64).T], axis=2)


def draw_scale(width: int, height: int) -> Image.Image:
    """A bar of all colours, the highest at the top."""
    level = np.broadcast_to(np.linspace(1, 0, height)[:, None], (height, width))
    return Image.fromarray(np.rint(heat_colors(level)).astype(np.uint8))
