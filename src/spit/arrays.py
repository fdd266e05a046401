"""Superpixels of one array, in the manner of scikit-image."""

from typing import Any, Never

import numpy as np
import numpy.typing as npt

from spit.bands import Axis, Bands, Space
from spit.kernels import Array, numba
from spit.kernels.options import TREE_COMPACTNESS, SuperpixelOptions
from spit.kernels.rules import COLOR_STEP
from spit.trees import Tree, cost_weights
from spit.wording import suggestion

SWEEPS = 5  # of refinement; more add little, see docs/superpixels.md
SPREAD = 20  # a region above so many times the median is far above it,
SHARES = (16, 8)  # and these parts of the mean size are tried as the least
OPTIONS = ("n", "compactness", "min_size", "mask", "nodata", "channel_axis", "spacing", "weights", "to", "refine",
           "start_label")


def superpixels(image: npt.ArrayLike, n: int = 600, *, compactness: float = TREE_COMPACTNESS,
                min_size: int | None = None, mask: npt.ArrayLike | None = None, nodata: float | None = None,
                channel_axis: Axis = "auto", spacing: npt.ArrayLike | None = None,
                weights: npt.ArrayLike | None = None, to: Space | None = None, refine: int | None = None,
                start_label: int = 1, **unknown: Never) -> npt.NDArray[np.int32]:
    """Label the superpixels of an image or a volume, like ``skimage.segmentation.slic``.

    Parameters
    ----------
    image : array_like
        ``(H, W)``, ``(D, H, W)``, or either with an axis of 1 to hundreds of bands; bool, integers or floats of any
        range. Not modified. An alpha channel counts as one more band; ``skimage.color.rgba2rgb`` removes it. What a
        masked array hides is outside. For batches, tensors, GPUs and the paper's algorithm use
        :class:`spit.SuperpixelTokenizer`.
    n : int
        Number of superpixels, ``n_segments`` in ``slic``. The answer has exactly so many, but at least one for each
        connected piece of the mask, and at most one for each pixel. Without refinement and `min_size`, regions of
        different `n` are nested.
    compactness : float
        Weight of a pixel of distance beside one step of 8 bits in colour, whatever the number of bands. 0.4 follows
        edges, 4 gives compact regions, 10 nearly squares. From 1 on, boundary moves weigh distances too.
    min_size : int, optional
        Pixels of the smallest region; only pieces of the mask that are smaller stay as they are. If `n` such regions do
        not fit, there are as many as the tree has: about half of what would fill the image with the smallest. By
        default 1; with refinement, up to an eighth of the mean size if a region would have more than 20 times the
        pixels of the median, as on a page of text, where letters are small and the paper is large.
    mask : array_like of bool, optional
        Pixels outside have the label ``start_label - 1``, and no region crosses them.
    nodata : float, optional
        Pixels with this value in any band, since regions are compared in all of them, are outside too. May be NaN.
    channel_axis : int or None, optional
        Axis of the bands; None for an image or a volume of one band. By default, ``(H, W)`` has one band and
        ``(H, W, 1 to 4)`` has them last. Other shapes could mean several things and are refused.
    spacing : sequence of float, optional
        Distance of neighbouring pixels along each axis, such as ``(5, 1, 1)`` for a stack of slices, in any unit: the
        smallest counts as one pixel.
    weights : sequence of float, optional
        How much each band counts: factors of the squared differences. Only their ratios matter.
    to : "saturated", "raw" or "lab", optional
        What is compared. "saturated" (default for bool, uint8 and floats in [0, 1]): values as they are, 0 to 1 or
        0 to 255; three bands are RGB with 1.5 times the saturation. "raw" (default for the rest): each band starts at
        its 1st percentile, and 255 steps are the span from there to the 99th in the band where that is widest. One
        scale for all bands keeps their contrasts in proportion, so that a band of noise does not weigh as much as one
        with objects; `weights` brings bands of different units together. Values beyond are clipped a span further out.
        Percentiles are those of every s-th pixel along each axis, with the smallest s that leaves 2²⁰ values.
        "lab": CIELAB of RGB. All are compared in sixteenths of a step.
    refine : int, optional
        Sweeps of boundary moves; 0 for none, 1 for speed. By default 5, but none in a volume, which cannot be refined.
    start_label : int
        Smallest label. ``skimage.measure.regionprops`` ignores label 0.

    Returns
    -------
    labels : ndarray of int32
        ``(H, W)`` or ``(D, H, W)``, from `start_label` in the order of the first pixels before refinement. Every region
        is connected through sides of pixels. An ``xarray.DataArray`` gives a DataArray with the spatial coordinates.

    Raises
    ------
    TypeError
        If the image is no array of real numbers, or there is no such option.
    ValueError
        If the axis of the bands is in doubt, values are NaN or infinite, or an option is out of range.

    Notes
    -----
    Regions that are each other's cheapest neighbour merge, all such pairs at once. The cost is the growth of the
    squared error of colours and weighted positions [1]_. The tree of these merges is cut at `n` regions. Then pixels at
    boundaries move to a neighbouring region where that lowers the squared error of the colours, and from a
    `compactness` of 1 on of positions too. SLIC [2]_ looks for centres instead, which neither gives an exact count nor
    connected regions.

    References
    ----------
    .. [1] J. H. Ward, "Hierarchical grouping to optimize an objective function", JASA 58, 1963.
    .. [2] R. Achanta et al., "SLIC superpixels compared to state-of-the-art superpixel methods", TPAMI 34, 2012.

    Examples
    --------
    >>> import numpy, spit
    >>> from skimage.data import chelsea
    >>> labels = spit.superpixels(chelsea(), n=200, min_size=50)
    >>> labels.shape, int(labels.min()), int(labels.max()), int(numpy.bincount(labels.ravel())[1:].min()) >= 50
    ((300, 451), 1, 200, True)

    A volume of anisotropic voxels, and an image of twelve bands with holes:

    >>> volume = numpy.arange(4 * 20 * 20, dtype=numpy.uint16).reshape(4, 20, 20)
    >>> int(spit.superpixels(volume, n=30, channel_axis=None, spacing=(5, 1, 1)).max())
    30
    >>> bands = numpy.random.default_rng(0).random((12, 20, 30))
    >>> bands[:, 5:9, 5:9] = numpy.nan
    >>> numpy.unique(spit.superpixels(bands, n=10, channel_axis=0, nodata=numpy.nan))
    array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10], dtype=int32)
    """
    if unknown:
        raise TypeError(_no_option(next(iter(unknown))))
    if isinstance(start_label, bool) or not isinstance(start_label, int | np.integer):
        raise ValueError(f"expected start_label as a whole number, got {start_label!r}")
    bands = Bands.of(image, channel_axis, mask, nodata, to)
    volume = bands.planes.ndim == 4
    sweeps = SWEEPS * (not volume) if refine is None else refine
    SuperpixelOptions(method="tree", refine=sweeps)  # checks it
    if volume and sweeps > 0:
        raise ValueError(f"expected refine=0 for a volume, got {sweeps}; boundary moves are for images alone")
    labels = _even(_tree(bands, compactness, spacing, weights), n, min_size, _weighted(bands.colors, weights), sweeps)
    labels += np.int32(start_label - 1)
    return _like(image, channel_axis, labels)


def hierarchy(image: npt.ArrayLike, *, compactness: float = TREE_COMPACTNESS, mask: npt.ArrayLike | None = None,
              nodata: float | None = None, channel_axis: Axis = "auto", spacing: npt.ArrayLike | None = None,
              weights: npt.ArrayLike | None = None, to: Space | None = None) -> Tree:
    """Superpixels of an image or a volume at every count, nested in each other: the tree that :func:`superpixels` cuts.

    Parameters
    ----------
    image : array_like
        As for :func:`superpixels`, as are all options.

    Returns
    -------
    tree : spit.trees.Tree
        ``at(n, min_size)``, the labels of n regions; ``cut(height)``, those below a height; ``between(fine, coarse)``,
        what lies in what; ``keep(mask, times)``, a tree with more regions there; ``parents`` and ``heights`` of the
        merges. Labels are plain arrays.

    Examples
    --------
    >>> import numpy, spit
    >>> tree = spit.hierarchy(numpy.array([[10, 12, 80, 90]], numpy.uint8))
    >>> tree.at(3), tree.at(2)
    (array([[1, 1, 2, 3]], dtype=int32), array([[1, 1, 2, 2]], dtype=int32))
    >>> tree.between(3, 2)  # of the labels 0 to 3
    array([0, 1, 2, 2], dtype=int32)
    >>> tree.cut(height=10)
    array([[1, 1, 2, 3]], dtype=int32)
    >>> tree.keep(numpy.array([[True, False, False, False]]), times=100).at(3)
    array([[1, 2, 3, 3]], dtype=int32)
    """
    return _tree(Bands.of(image, channel_axis, mask, nodata, to), compactness, spacing, weights)


def _even(tree: Tree, n: int, min_size: int | None, colors: Array, sweeps: int) -> Array:
    """A partition, with the smallest of some least sizes with which no region is far above the median."""
    labels = tree.refined(colors, n, sweeps, 1 if min_size is None else min_size)
    for share in SHARES if min_size is None and sweeps > 0 else ():
        sizes = np.bincount(labels.ravel())[1:]
        if sizes.max() <= SPREAD * np.median(sizes):
            break
        evener = tree.refined(colors, n, sweeps, max(tree.most // n // share, 1))
        labels = evener if evener.max() == labels.max() else labels  # n comes first
    return labels


def _tree(bands: Bands, compactness: float, spacing: npt.ArrayLike | None, weights: npt.ArrayLike | None) -> Tree:
    SuperpixelOptions(method="tree", compactness=compactness)  # checks it
    return Tree.of(bands.planes, cost_weights(bands.planes.shape, compactness, weights, spacing), bands.mask)


def cut(planes: Array, options: SuperpixelOptions) -> tuple[Array, int]:
    """Labels and number of the superpixels of one image, as :class:`spit.SuperpixelTokenizer` makes them.

    Shape:
        ``(C, H, W)`` uint8, contiguous, to ``(H, W)`` int32.
    """
    if options.method == "tree":
        count = options.tree_count(planes[0].size)
        return numba.tree_labels(planes[None], count, float(options.compactness), options.refine)[0], count
    colors = np.repeat(planes, 3, 0) if len(planes) == 1 else planes  # a grey image counts as RGB
    features = numba.superpixel_features(colors[None], options.features == "saturated")
    labels, counts = numba.superpixel_labels(features, options.rules())
    count = int(counts[0])
    if options.refine > 0:
        labels = numba.refine(labels, np.array([0, count]), planes[None], options.refine)
    return labels[0], count


def _weighted(colors: Array, weights: npt.ArrayLike | None) -> Array:
    """Colours whose squared differences count as the weights say."""
    if weights is None:
        return colors
    factors = np.sqrt(np.asarray(weights) / np.max(weights))
    steps = 1 if colors.dtype == np.int16 else COLOR_STEP
    scales = (factors * steps).reshape(-1, *[1] * (colors.ndim - 1))
    weighted: Array = np.rint(colors * scales).astype(np.int16)
    return weighted


def _like(image: Any, channel_axis: Axis, labels: Array) -> Array:
    """The labels with the coordinates of an ``xarray.DataArray``."""
    if not (hasattr(image, "dims") and hasattr(image, "coords") and hasattr(image, "isel")):
        return labels
    if labels.ndim < image.ndim:
        axis = -1 if channel_axis == "auto" or channel_axis is None else channel_axis
        image = image.isel({image.dims[axis]: 0}, drop=True)
    array: Array = type(image)(labels, image.coords, image.dims, "superpixels")
    return array


def _no_option(name: str) -> str:
    """What to say of an option that :func:`superpixels` does not have."""
    if name == "n_segments":
        return "expected n, got n_segments; slic's n_segments is n here"
    return f"expected {', '.join(OPTIONS[:-1])} or {OPTIONS[-1]}, got {name}; " + suggestion(
        name, OPTIONS, "docs/tutorials/superpixels.md shows what they do")
