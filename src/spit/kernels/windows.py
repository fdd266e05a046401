"""Where colours are sampled and positions are read, for arrays and tensors of any device."""

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


def crops(centroids: Any, side: int, height: int, width: int) -> Any:
    """A square of ``side`` pixels around each centroid, moved into the image if it fits.

    Shape:
        ``(ΣN, 2)`` floats, ``(y, x)`` with pixel centres at whole numbers, to the corners ``(ΣN, 2)``, whole floats.
    """
    corners = (centroids - (side - 1) / 2 + 0.5) // 1
    for axis, length in enumerate((height, width)):
        corners[:, axis] = corners[:, axis].clip(0, max(length - side, 0))
    return corners


def cell_weights(places: Any, rows: Any, columns: Any) -> Any:
    """Bilinear weights of the cells of a grid around places; those outside of the grid read its border.

    Args:
        places: in cells, ``(y, x)``.
        rows: ``0 … R − 1`` in the dtype of the places; ``columns`` likewise.

    Shape:
        places ``(N, 2)`` to ``(N, R·C)``; each row adds up to 1.
    """
    hats = [(1 - abs(places[:, axis].clip(0, len(cells) - 1)[:, None] - cells)).clip(0)
            for axis, cells in enumerate((rows, columns))]
    return (hats[0][:, :, None] * hats[1][:, None]).reshape(len(places), -1)
