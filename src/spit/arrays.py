"""Superpixels of one array, in the manner of scikit-image."""

import sys
from os import PathLike
from typing import Never

import numpy as np
import numpy.typing as npt

from spit.kernels import Array, numba
from spit.kernels.options import TREE_COMPACTNESS, SuperpixelOptions
from spit.ranges import check_range
from spit.trees import Tree
from spit.wording import suggestion

SWEEPS = 3  # of refinement; more add little, see docs/superpixels.md
OPTIONS = ("n", "compactness", "mask", "channel_axis", "refine", "start_label")


def superpixels(image: npt.ArrayLike, n: int = 600, *, compactness: float = TREE_COMPACTNESS,
                mask: npt.ArrayLike | None = None, channel_axis: int | None = -1, refine: int | None = None,
                start_label: int = 1, **unknown: Never) -> npt.NDArray[np.int32]:
    """Label the superpixels of an image, like ``skimage.segmentation.slic``.

    Regions that are each other's cheapest neighbour merge, all such pairs at once. The cost is the growth of the
    squared error of colours and weighted positions (Ward, 1963). The tree of these merges is cut at n regions. Then
    boundary pixels move where that lowers the error of the colours. For batches, tensors, GPUs and the paper's
    algorithm use :class:`spit.SuperpixelTokenizer`.

    Args:
        image: ``(H, W)`` grey or ``(H, W, C)``; bool, uint8, uint16, or floats in [0, 1]. Not modified. An alpha
            channel counts as one more colour; ``skimage.color.rgba2rgb`` removes it.
        n: exact number of superpixels, at most the number of pixels, and at least the number of the mask's connected
            pieces. Without refinement, regions of different n are nested. In ``slic`` it is ``n_segments``.
        compactness: weight of a pixel of distance beside one step of 255 in colour. 0.3 follows edges, 3 gives even
            regions, 10 nearly squares.
        mask: ``(H, W)`` bool; pixels outside have the label ``start_label - 1``, and no region crosses them.
        channel_axis: axis of the channels; None for a grey image.
        refine: sweeps of boundary moves; 0 for none (default: 3, and none if compactness is 1 or more, since moves look
            at colours alone).
        start_label: smallest label. ``skimage.measure.regionprops`` ignores label 0.

    Returns:
        ``(H, W)`` int32 labels from ``start_label`` in the order of their first pixels before refinement; every region
        is 4-connected.

    Example:
        >>> import spit
        >>> from skimage.data import chelsea
        >>> labels = spit.superpixels(chelsea(), n=200)
        >>> labels.shape, int(labels.min()), int(labels.max())
        ((300, 451), 1, 200)
    """
    if unknown:
        raise TypeError(_no_option(next(iter(unknown))))
    planes = _planes(image, channel_axis)
    if isinstance(start_label, bool) or not isinstance(start_label, int | np.integer):
        raise ValueError(f"expected start_label as a whole number, got {start_label!r}")
    sweeps = SWEEPS * (compactness < 1) if refine is None else refine
    SuperpixelOptions(method="tree", refine=sweeps)  # checks it
    tree = _tree(planes, compactness, mask)
    labels = tree.at(n)
    if sweeps > 0 and tree.most < labels.size:
        labels = _refined_inside(labels, tree.mask, planes, sweeps)
    elif sweeps > 0:
        labels = refined(labels[None] - np.int32(1), int(labels.max()), planes, sweeps)[0] + np.int32(1)
    return labels + np.int32(start_label - 1)


def hierarchy(image: npt.ArrayLike, *, compactness: float = TREE_COMPACTNESS, mask: npt.ArrayLike | None = None,
              channel_axis: int | None = -1) -> Tree:
    """Superpixels of an image at every count, nested in each other: the tree that :func:`superpixels` cuts.

    Args:
        image: as for :func:`superpixels`, as are ``compactness``, ``mask`` and ``channel_axis``.

    Example:
        >>> import numpy, spit
        >>> tree = spit.hierarchy(numpy.array([[10, 12, 80, 90]], numpy.uint8))
        >>> tree.at(3), tree.at(2)
        (array([[1, 1, 2, 3]], dtype=int32), array([[1, 1, 2, 2]], dtype=int32))
        >>> tree.between(3, 2)  # of the labels 0 to 3
        array([0, 1, 2, 2], dtype=int32)
        >>> tree.cut(height=10)
        array([[1, 1, 2, 3]], dtype=int32)
    """
    return _tree(_planes(image, channel_axis), compactness, mask)


def _tree(planes: Array, compactness: float, mask: npt.ArrayLike | None) -> Tree:
    options = SuperpixelOptions(method="tree", compactness=compactness)  # checks it
    return Tree.of(planes, options.compactness, None if mask is None else _inside(mask, planes.shape[1:]))


def cut(planes: Array, options: SuperpixelOptions) -> tuple[Array, int]:
    """Labels and number of the superpixels of one image, as :class:`spit.SuperpixelTokenizer` makes them.

    Shape:
        ``(C, H, W)`` uint8, contiguous, to ``(H, W)`` int32.
    """
    if options.method == "tree":
        count = options.tree_count(planes[0].size)
        labels = numba.tree_labels(planes[None], count, float(options.compactness))
    else:
        colors = np.repeat(planes, 3, 0) if len(planes) == 1 else planes  # a grey image counts as RGB
        features = numba.superpixel_features(colors[None], options.features == "saturated")
        labels, counts = numba.superpixel_labels(features, options.rules())
        count = int(counts[0])
    return refined(labels, count, planes, options.refine)[0], count


def refined(labels: Array, count: int, planes: Array, sweeps: int) -> Array:
    """The labels of one image, ``(1, H, W)``, after sweeps of boundary moves."""
    return numba.refine(labels, np.array([0, count]), planes[None], sweeps) if sweeps > 0 else labels


def _refined_inside(labels: Array, mask: Array, planes: Array, sweeps: int) -> Array:
    """Labels from 1 in a mask after sweeps of boundary moves, which do not leave it, and 0 outside."""
    count = int(labels.max())
    regions = np.where(mask, labels, count + 1) - np.int32(1)
    # The outside is one region of one colour, further from all others than they are from each other.
    colors = np.where(mask, planes, np.uint8(0))
    far = np.where(mask, np.uint8(0), np.uint8(255))[None]
    moved = refined(regions[None], count + 1, np.concatenate([colors, *[far] * (2 * len(planes))]), sweeps)[0]
    return np.where(mask, moved + np.int32(1), np.int32(0))


def _no_option(name: str) -> str:
    """What to say of an option that :func:`superpixels` does not have."""
    if name == "n_segments":
        return "expected n, got n_segments; slic's n_segments is n here"
    return f"expected {', '.join(OPTIONS[:-1])} or {OPTIONS[-1]}, got {name}; " + suggestion(
        name, OPTIONS, "spit.SuperpixelTokenizer has all options")


def _inside(mask: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    """The mask as a contiguous array."""
    inside = np.ascontiguousarray(mask)
    if inside.shape != shape or inside.dtype != bool:
        raise ValueError(f"expected a mask of bool and shape {shape}, got {inside.dtype} of shape {inside.shape}")
    if not inside.any():
        raise ValueError("expected a mask with at least one pixel, got one without")
    return inside


def _planes(image: npt.ArrayLike, channel_axis: int | None) -> Array:
    """The image as ``(C, H, W)`` uint8, contiguous."""
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
    if channel_axis is None and pixels.ndim == 3:
        raise ValueError(f"expected a grey image of shape (H, W) with channel_axis=None, got {pixels.shape}")
    if channel_axis is not None and channel_axis not in (-1, 2) and pixels.ndim == 3:
        pixels = np.moveaxis(pixels, channel_axis, -1)
    elif pixels.ndim == 3 and pixels.shape[0] in (1, 3, 4) and pixels.shape[2] > 4:
        raise ValueError(f"expected channels last, (H, W, C), got {pixels.shape}; give channel_axis=0")
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
    return np.ascontiguousarray(np.moveaxis(np.atleast_3d(pixels), -1, 0))
