"""Label maps and images as the loops of this package need them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from spit.kernels import Array

SPREAD = 8  # labels that go further than so many times the pixels are sorted, not counted


def number(labels: npt.ArrayLike, background: int | None, dimensions: tuple[int, ...] = (2,)) -> tuple[Array, Array]:
    """Number the labels that occur in a map, in their order, from 1; background is 0.

    Shape:
        ``(H, W)`` or ``(D, H, W)`` to the labels ``(N,)`` int64 and their numbers at the pixels, int32, contiguous.
    """
    given = np.asarray(labels)
    if given.dtype != bool and not np.issubdtype(given.dtype, np.integer):
        raise TypeError(f"expected integer labels, got {given.dtype}; labels.astype(int) converts whole numbers")
    if given.ndim not in dimensions or given.size == 0:
        shapes = " or ".join(("(H, W)", "(D, H, W)")[axes - 2] for axes in dimensions)
        raise ValueError(f"expected labels of shape {shapes} with at least one pixel, got {given.shape}")
    low, high = int(given.min()), int(given.max())
    if high > np.iinfo(np.int64).max:
        raise ValueError(f"expected labels below 2⁶³, got {high}")
    if high - low <= SPREAD * given.size:
        places = np.subtract(given, low, dtype=np.int64) if low or given.dtype == bool else given
        present = np.zeros(high - low + 1, bool)
        present[places] = True
        names = np.flatnonzero(present) + low
        table = np.cumsum(present, dtype=np.int32)
        numbers = table[places]
    else:
        names, numbers = np.unique(given, return_inverse=True)
        numbers = numbers.reshape(given.shape).astype(np.int32) + np.int32(1)
    if background is not None and background in names:
        place = int(np.searchsorted(names, background))
        numbers = np.insert(np.arange(1, len(names), dtype=np.int32), place, 0)[numbers - 1]
        names = np.delete(names, place)
    return names.astype(np.int64), np.ascontiguousarray(numbers)


def bands(image: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The image as bands, channels last, ``(*shape, C)``."""
    given = np.asarray(image)
    if not (given.dtype == bool or np.issubdtype(given.dtype, np.integer) or np.issubdtype(given.dtype, np.floating)):
        raise TypeError(f"expected an image of real numbers, got {given.dtype}")
    if given.shape[: len(shape)] != shape or given.ndim - len(shape) not in (0, 1):
        raise ValueError(f"expected an image of the labels' shape {shape}, with or without channels last, got "
                         f"{given.shape}")
    return given if given.ndim > len(shape) else given[..., None]
