"""Arrays of any kind as the integers that the tree and refinement compare."""

import sys
from dataclasses import dataclass
from math import isnan, prod
from numbers import Real
from os import PathLike
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from spit.kernels import Array, numba
from spit.kernels.rules import COLOR_STEP, SCALE, TREE_PUSH
from spit.options import check_choice
from spit.ranges import ROUNDING, check_range
from spit.wording import plural

Space = Literal["saturated", "raw", "lab"]
Axis = int | Literal["auto"] | None

SPAN = 255 * COLOR_STEP  # of 8 bits
SAMPLE = 2**20  # values that the scale of an image is measured on, at most
PERCENTILES = (1, 99)


@dataclass(frozen=True, eq=False)
class Bands:
    """An image as integers.

    Attributes:
        planes: what the tree compares, with COLOR_STEP for a step of 8 bits.
        colors: what refinement compares, which are not saturated.
        mask: pixels that belong to regions; None for all.

    Shape:
        planes and colors ``(C, *shape)`` int16 or uint8, mask ``shape`` bool; shape is ``(H, W)`` or ``(D, H, W)``.
    """

    planes: Array
    colors: Array
    mask: Array | None

    @staticmethod
    def of(image: npt.ArrayLike, channel_axis: Axis = "auto", mask: npt.ArrayLike | None = None,
           nodata: float | None = None, to: Space | None = None) -> "Bands":
        """The bands of an image; see :func:`spit.superpixels` for the arguments."""
        pixels, inside = valid_pixels(image, channel_axis, mask, nodata)
        if inside is not None and not inside.any():
            raise ValueError("expected a mask with at least one pixel, got one without"
                             if mask is not None and not np.any(mask) else
                             "expected at least one pixel with data in every band, got none")
        space = default_space(pixels, inside) if to is None else to
        return Bands.converted(pixels, inside, space, raw_scale(sample(pixels, inside)) if space == "raw" else None)

    @staticmethod
    def converted(pixels: Array, inside: Array | None, space: Space, scale: tuple[Array, float] | None) -> "Bands":
        """The bands of pixels ``(C, *shape)``, with the scale of the whole image for "raw"."""
        check_choice("to", space, ("saturated", "raw", "lab"))
        floats = pixels.dtype.kind == "f"
        if scale is not None:
            planes = scaled(pixels, inside, *scale)
            return Bands(planes, planes, inside)
        if pixels.dtype not in (bool, np.uint8) and not floats:
            raise TypeError(f"expected bool, uint8 or floats in [0, 1] for to={space!r}, got {pixels.dtype}; give "
                            "to='raw', or divide by the largest value that is possible, as in image / 4095")
        if space == "lab" and len(pixels) != 3:
            raise ValueError(f"expected an RGB image for to='lab', got {plural(len(pixels), 'band')}; give to='raw'")
        if floats and len(pixels) != 3:  # as they are, not rounded to 8 bits first
            _check_unit(pixels, inside)
            planes = scaled(pixels, inside, np.zeros(len(pixels)), 1.0)
            return Bands(planes, planes + np.int16(SCALE), inside)
        if floats and inside is not None:
            pixels = np.where(inside, pixels, pixels.dtype.type(0))
        colors = np.ascontiguousarray(eight_bits(pixels))
        if space == "lab":
            planes = _lab(colors)
            return Bands(planes, planes, inside)
        planes = colors.astype(np.int16) * np.int16(COLOR_STEP) - np.int16(SCALE)
        if len(planes) == 3:
            rows = planes.reshape(1, 3, -1, planes.shape[-1])  # of a volume too
            planes = numba.saturate(rows, TREE_PUSH).reshape(planes.shape)
        return Bands(planes, colors, inside)


def channels_first(image: npt.ArrayLike, channel_axis: Axis) -> Array:
    """A view of the image as ``(C, H, W)`` or ``(C, D, H, W)``."""
    if isinstance(image, str | PathLike):
        raise TypeError(f"expected an array, got the path {str(image)!r}; read it with skimage.io.imread first")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(image, torch.Tensor):
        raise TypeError("expected an array with channels last, got a tensor; give image.movedim(0, -1).numpy(), or use "
                        "spit.SuperpixelTokenizer, which takes tensors")
    pixels = np.asarray(image)
    if pixels.ndim == 0:
        raise TypeError(f"expected an array of shape (H, W) or (H, W, C), got {type(image).__name__}")
    if pixels.dtype.kind not in "biuf":
        raise TypeError(f"expected an image of bool, integers or floats, got {pixels.dtype}")
    if pixels.size == 0:
        raise ValueError(f"expected an image with at least one pixel and channel, got shape {pixels.shape}")
    if channel_axis == "auto":
        channel_axis = axis_of(pixels.shape)
    if channel_axis is None:
        bands = pixels[None]
    elif isinstance(channel_axis, int | np.integer) and -pixels.ndim <= channel_axis < pixels.ndim:
        bands = np.moveaxis(pixels, channel_axis, 0)
    else:
        raise ValueError(f"expected channel_axis as one of {pixels.ndim} axes, None or 'auto', got {channel_axis!r}")
    if bands.ndim not in (3, 4):
        raise ValueError(f"expected 2 axes of pixels or 3 of voxels beside channel_axis={channel_axis}, got shape "
                         f"{pixels.shape}")
    return bands


def axis_of(shape: tuple[int, ...]) -> int | None:
    """The axis of the channels where there is no doubt."""
    if len(shape) == 2:
        return None
    if len(shape) == 3 and shape[-1] <= 4:
        return -1
    if len(shape) not in (3, 4):
        raise ValueError(f"expected an image of shape (H, W) or (H, W, C), or a volume, got {shape}")
    axes = (0, -1) if shape[0] < shape[-1] else (-1, 0)
    first, second = (f"channel_axis={axis} for {'an image' if len(shape) == 3 else 'a volume'} of {shape[axis]} bands"
                     for axis in axes)
    second = second if len(shape) == 4 else "channel_axis=None for a volume of one band"
    raise ValueError(f"expected (H, W) or (H, W, 1 to 4), got {shape}; give {first}, or {second}")


def valid_pixels(image: npt.ArrayLike, channel_axis: Axis, mask: npt.ArrayLike | None,
                 nodata: float | None) -> tuple[Array, Array | None]:
    """The image as ``(C, *shape)``, and the pixels that belong to regions, None for all.

    Values there that cannot be compared are refused.
    """
    pixels = channels_first(image, channel_axis)
    hidden = np.ma.getmask(image)  # of a masked array
    outside = None if hidden is np.ma.nomask else channels_first(hidden, channel_axis)
    shape = pixels.shape[1:]
    inside = np.ones(shape, np.bool_) if mask is None else np.array(mask)
    if inside.shape != shape or inside.dtype != bool:
        raise ValueError(f"expected a mask of bool and shape {shape}, got {inside.dtype} of shape {inside.shape}"
                         + ("; give mask > 0" if inside.shape == shape else ""))
    if nodata is not None:
        if isinstance(nodata, bool) or not isinstance(nodata, Real):
            raise ValueError(f"expected nodata as a number, got {nodata!r}")
        inside &= (~np.isnan(pixels) if isnan(nodata) else pixels != nodata).all(0)
    if outside is not None:
        inside &= ~outside.any(0)
    if pixels.dtype.kind == "f" and (stray := int((~np.isfinite(pixels) & inside).sum())):
        raise ValueError(f"expected numbers, got NaN or infinity in {plural(stray, 'place')}; give "
                         "nodata=float('nan'), or a mask without these pixels")
    return pixels, None if inside.all() else inside


def default_space(pixels: Array, inside: Array | None) -> Space:
    """saturated for 8 bits and floats in [0, 1], else raw."""
    if pixels.dtype.kind == "f":
        low, high = _extremes(pixels, inside)
        stray = max(ROUNDING, float(np.finfo(pixels.dtype).eps))
        return "saturated" if -stray <= low and high <= 1 + stray else "raw"
    return "saturated" if pixels.dtype in (bool, np.uint8) else "raw"


def _extremes(pixels: Array, inside: Array | None) -> tuple[float, float]:
    where: Any = True if inside is None else inside
    return (float(pixels.min(where=where, initial=np.inf)), float(pixels.max(where=where, initial=-np.inf)))


def _check_unit(pixels: Array, inside: Array | None) -> None:
    """Refuse floats outside of [0, 1]."""
    check_range(*_extremes(pixels, inside), float(np.finfo(pixels.dtype).eps))


def eight_bits(pixels: Array) -> Array:
    """An image of bool, uint8, uint16 or floats in [0, 1] as uint8."""
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype == bool:
        return pixels * np.uint8(255)
    if pixels.dtype == np.uint16:
        pixels = pixels / 65535
    elif pixels.dtype.kind != "f":
        raise TypeError(f"expected bool, uint8, uint16 or floats in [0, 1], got {pixels.dtype}")
    _check_unit(pixels, None)
    steps: Array = np.rint(pixels.astype(np.float32) * np.float32(255)).clip(0, 255)
    return steps.astype(np.uint8)


def sample_grid(bands: int, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Every s-th pixel of every axis from the origin on, with the smallest s that leaves SAMPLE values or fewer."""
    step = 1
    while bands * prod(-(-side // step) for side in shape) > SAMPLE and step < max(shape):
        step += 1
    return (slice(None, None, step),) * len(shape)


def sample(pixels: Array, inside: Array | None) -> Array:
    """The values of :func:`sample_grid` or, if none of them is inside, all that are.

    Shape:
        ``(C, *shape)`` to ``(C, N)`` float64.
    """
    grid = sample_grid(len(pixels), pixels.shape[1:])
    values: Array = pixels[:, *grid].reshape(len(pixels), -1)
    if inside is not None:
        values = values[:, inside[grid].ravel()]
        values = values if values.size else pixels[:, inside]
    answer: Array = values.astype(np.float64)
    return answer


def raw_scale(values: Array) -> tuple[Array, float]:
    """The value of each band that becomes 0, and the difference that becomes 255 steps; of a sample ``(C, N)``."""
    low, high = np.percentile(values, PERCENTILES, axis=1)
    if not (high > low).any():  # next to all values are equal
        low, high = values.min(1), values.max(1)
    return low, float((high - low).max()) or 1.0


def scaled(pixels: Array, inside: Array | None, low: Array, span: float) -> Array:
    """Bands as planes; the values that are further than a span from the nearest of its ends are clipped to there."""
    planes = np.empty(pixels.shape, np.int16)
    low = low.reshape(-1, *[1] * (pixels.ndim - 2))
    for y in range(pixels.shape[1]):  # row by row, where bands that come last are near each other
        values = (pixels[:, y].astype(np.float64) - low) / span
        values = values if inside is None else np.where(inside[y], values, 0.0)
        planes[:, y] = np.rint(values.clip(-1, 2) * SPAN) - SCALE
    return planes


def _lab(colors: Array) -> Array:
    """CIELAB (D65) of sRGB in 8 bits, with 255 steps from black to white."""
    share = np.arange(256) / 255
    linear = np.where(share > 0.04045, ((share + 0.055) / 1.055) ** 2.4, share / 12.92)[colors]
    matrix = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))
    white = (0.95047, 1.0, 1.08883)
    x, y, z = (sum(linear[c] * (row[c] / light) for c in range(3)) for row, light in zip(matrix, white, strict=True))
    x, y, z = (np.where(value > 0.008856, np.cbrt(value), 7.787 * value + 16 / 116) for value in (x, y, z))
    lab = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])
    planes: Array = np.rint(lab * (SPAN / 100)).astype(np.int16) - np.int16(SCALE)
    return planes
