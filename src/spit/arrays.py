"""Superpixels of one array, in the manner of scikit-image."""

import sys
from dataclasses import replace
from math import log
from os import PathLike
from typing import Any, Never

import numpy as np
import numpy.typing as npt

from spit.kernels import Array, numba
from spit.kernels.options import SuperpixelOptions
from spit.ranges import check_range
from spit.wording import suggestion

SWEEPS = 3  # of refinement; more add little, see docs/superpixels.md
OPTIONS = ("n", "refine", "start_label")
GROWTH = 3.6  # regions that one level joins to one, by the similarity "variance"


def superpixels(image: npt.ArrayLike, n: int = 600, *, refine: int = SWEEPS, start_label: int = 1,
                **unknown: Never) -> npt.NDArray[Any]:
    """Label the superpixels of an image, like ``skimage.segmentation.slic``.

    Regions are joined where the squared error of their saturated colours grows least: level by level and, near n, in
    rounds that join the best eighth. Then boundary pixels move where that lowers the error. For batches, tensors, GPUs
    and all options use :class:`spit.SuperpixelTokenizer`.

    Args:
        image: ``(H, W)`` grey or ``(H, W, C)``; bool, uint8, uint16, or floats in [0, 1]. Not modified. An alpha
            channel counts as one more colour; ``skimage.color.rgba2rgb`` removes it.
        n: exact number of superpixels, at most the number of pixels. In ``slic`` it is ``n_segments``.
        refine: sweeps of boundary moves; 0 for none.
        start_label: smallest label. ``skimage.measure.regionprops`` ignores label 0.

    Returns:
        ``(H, W)`` int64 labels from ``start_label``; every region is 4-connected.

    Example:
        >>> import spit
        >>> from skimage.data import chelsea
        >>> labels = spit.superpixels(chelsea(), n=200)
        >>> labels.shape, int(labels.min()), int(labels.max())
        ((300, 451), 1, 200)
    """
    if unknown:
        raise TypeError(_no_option(next(iter(unknown))))
    pixels = _pixels(image)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"expected n, the number of superpixels, as a whole number of 1 or more, got {n!r}")
    if isinstance(start_label, bool) or not isinstance(start_label, int | np.integer):
        raise ValueError(f"expected start_label as a whole number, got {start_label!r}")
    size = pixels.shape[0] * pixels.shape[1]
    n = min(int(n), size)
    planes = np.ascontiguousarray(np.moveaxis(pixels, -1, 0))
    options = SuperpixelOptions(
        levels=max(int(log(max(size / (3 * n), 1)) / log(GROWTH)), 1),  # about 3 n regions or more for the rounds
        features="saturated" if len(planes) in (1, 3) else "paper",
        similarity="variance",
        self_loop="none",
        max_tokens=n,
        refine=refine,
    )
    features = _features(planes, options)
    labels, counts = numba.superpixel_labels(features, options.rules())
    if counts[0] < n:  # flat areas were joined at the first levels: use a lower one
        labels = _between_levels(features, replace(options, max_tokens=None), n)
    whole: Array = refined(labels, n, planes, refine)[0].astype(np.int64) + start_label
    return whole


def cut(planes: Array, options: SuperpixelOptions) -> tuple[Array, int]:
    """Labels and number of the superpixels of one image, as :class:`spit.SuperpixelTokenizer` makes them.

    Shape:
        ``(C, H, W)`` uint8, contiguous, to ``(H, W)`` int32.
    """
    features = _features(planes, options)
    labels, counts = numba.superpixel_labels(features, options.rules())
    return refined(labels, int(counts[0]), planes, options.refine)[0], int(counts[0])


def _features(planes: Array, options: SuperpixelOptions) -> Array:
    """What superpixels of one image are made from, ``(1, C', H, W)``; a grey image counts as RGB."""
    colors = np.repeat(planes, 3, 0) if len(planes) == 1 else planes
    return numba.superpixel_features(colors[None], options.features == "saturated")


def refined(labels: Array, count: int, planes: Array, sweeps: int) -> Array:
    """The labels of one image, ``(1, H, W)``, after sweeps of boundary moves."""
    return numba.refine(labels, np.array([0, count]), planes[None], sweeps) if sweeps > 0 else labels


def _between_levels(features: Array, options: SuperpixelOptions, count: int) -> Array:
    """The partition with ``count`` regions between two levels, ``(1, H, W)``; see :meth:`spit.Hierarchy.at`."""
    height, width = features.shape[2:]
    levels: list[Array] = [np.arange(height * width, dtype=np.int32).reshape(1, height, width)]
    for parents, _ in numba.superpixels(features, options.rules()):
        levels.append(parents[levels[-1]])
    below = max(index for index, labels in enumerate(levels) if labels.max() + 1 >= count)
    labels: Array = levels[below][0]
    if labels.max() + 1 > count:
        labels = numba.between(features[0], labels, levels[below + 1][0] if below + 1 < len(levels) else None, count)
    return labels[None]


def _no_option(name: str) -> str:
    """What to say of an option that :func:`superpixels` does not have."""
    if name == "n_segments":
        return "expected n, got n_segments; slic's n_segments is n here"
    return f"expected {', '.join(OPTIONS[:-1])} or {OPTIONS[-1]}, got {name}; " + suggestion(
        name, OPTIONS, "spit.SuperpixelTokenizer has all options")


def _pixels(image: npt.ArrayLike) -> npt.NDArray[Any]:
    """The image as ``(H, W, C)`` uint8."""
    if isinstance(image, str | PathLike):
        raise TypeError(f"expected an array, got the path {str(image)!r}; read it with skimage.io.imread first")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(image, torch.Tensor):
        raise TypeError("expected an array with channels last, got a tensor; give image.movedim(0, -1).numpy(), or use "
                        "spit.SuperpixelTokenizer, which takes tensors")
    pixels = np.asarray(image)
    if pixels.ndim == 0:
        raise TypeError(f"expected an array of shape (H, W) or (H, W, C), got {type(image).__name__}")
    if pixels.size == 0:
        raise ValueError(f"expected an image with at least one pixel and channel, got shape {pixels.shape}")
    if pixels.ndim not in (2, 3):
        raise ValueError(f"expected an image of shape (H, W) or (H, W, C), got {pixels.shape}")
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3, 4) and pixels.shape[2] > 4:
        raise ValueError(f"expected channels last, (H, W, C), got {pixels.shape}; give np.moveaxis(image, 0, -1)")
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    elif pixels.dtype == np.uint16:
        pixels = pixels / 65535
    elif pixels.dtype != np.uint8 and not np.issubdtype(pixels.dtype, np.floating):
        raise TypeError(f"expected bool, uint8, uint16 or floats in [0, 1], got {pixels.dtype}; "
                        "skimage.util.img_as_float converts it if its range is its type's")
    if pixels.dtype != np.uint8:
        check_range(float(pixels.min()), float(pixels.max()), float(np.finfo(pixels.dtype).eps))
        pixels = np.rint(pixels.astype(np.float32) * np.float32(255)).clip(0, 255).astype(np.uint8)
    return np.atleast_3d(pixels)
