"""What every metric accepts: images and label maps as numpy arrays or torch tensors."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

Labels = NDArray[np.int64]


def as_labels(labels: ArrayLike | Tensor, name: str = "labels") -> Labels:
    """A label map whose labels are 0…V − 1, each in use; a copy if the given one differs.

    Shape:
        ``(H, W)``, any integers or booleans; ``(H, W)`` int64.
    """
    values = _as_array(labels)
    if values.ndim != 2 or values.size == 0 or values.dtype.kind not in "iub":
        raise ValueError(f"expected {name} of integers, (H, W), got {values.dtype} of {values.shape}")
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * values.size:  # too sparse for a table
        return np.unique(values, return_inverse=True)[1].reshape(values.shape).astype(np.int64)
    flat = values.astype(np.int64).ravel() - low
    used = np.bincount(flat) > 0
    if not used.all():
        flat = (np.cumsum(used) - 1)[flat]
    return flat.reshape(values.shape)


def as_colors(image: ArrayLike | Tensor) -> NDArray[np.float64]:
    """The colours of an image, one row a pixel: uint8 becomes fractions of 255, floats stay.

    Shape:
        ``(H, W, C)``, or a tensor ``(C, H, W)`` as spit has them; ``(H, W, C)`` float64.
    """
    values = _as_array(image)
    if values.ndim != 3:
        raise ValueError(f"expected an image of (H, W, C), or a tensor of (C, H, W), got {values.shape}")
    if isinstance(image, Tensor):
        values = np.moveaxis(values, 0, -1)
    return values.astype(np.float64) / 255 if values.dtype == np.uint8 else values.astype(np.float64)


def check_same_size(first: NDArray[Any], second: NDArray[Any], name: str) -> None:
    """Refuse two maps of different sizes."""
    if first.shape[:2] != second.shape[:2]:
        raise ValueError(f"expected {name} of the labels' size {first.shape[:2]}, got {second.shape[:2]}")


def _as_array(values: ArrayLike | Tensor) -> NDArray[Any]:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
