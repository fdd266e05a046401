"""Where colours are sampled, for arrays and tensors of any device."""

from typing import Any


def squares(boxes: Any, height: int, width: int) -> Any:
    """The square around each box, with the box's centre and longer side, moved into the image if it fits.

    Shape:
        ``(ΣN, 4)`` int32, ``(y0, x0, y1, x1)`` with exclusive ends, to the same.
    """
    start, sides = boxes[:, :2], boxes[:, 2:] - boxes[:, :2]
    side = sides[:, :1] + (sides[:, 1:] - sides[:, :1]).clip(0)  # the longer one
    corner = start - (side - sides >> 1)
    frames = boxes + 0
    for axis, length in enumerate((height, width)):
        frames[:, axis] = (corner[:, axis] - (corner[:, axis] + side[:, 0] - length).clip(0)).clip(0)
        frames[:, axis + 2] = frames[:, axis] + side[:, 0]
    return frames
