"""Boxes of the regions of a partition."""

import torch
from torch import Tensor


def region_boxes(labels: Tensor, offsets: Tensor, rows: int | None = None) -> Tensor:
    """The smallest box ``(y0, x0, y1, x1)`` around each region, with exclusive ends; zeros if it has no pixel.

    Args:
        rows: of the answer, at least ΣN; zeros beyond (default: ΣN, which waits for a GPU).

    Shape:
        labels ``(B, H, W)`` int32, offsets ``(B + 1,)`` int64, answer ``(ΣN, 4)`` or ``(rows, 4)`` int32.
    """
    _, height, width = labels.shape
    packed = (labels + offsets[:-1, None, None]).flatten()
    y = torch.arange(height)[:, None].expand_as(labels).flatten()
    x = torch.arange(width).expand_as(labels).flatten()
    corner = packed.new_zeros(int(offsets[-1]) if rows is None else rows)
    return torch.stack([
        corner.scatter_reduce(0, packed, y, "amin", include_self=False),
        corner.scatter_reduce(0, packed, x, "amin", include_self=False),
        corner.scatter_reduce(0, packed, y + 1, "amax", include_self=False),
        corner.scatter_reduce(0, packed, x + 1, "amax", include_self=False),
    ], dim=1).int()
