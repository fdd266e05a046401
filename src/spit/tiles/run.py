"""Superpixels of an image that does not fit in memory: ``spit.superpixels_tiled``."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from spit.bands import Axis, Space
from spit.errors import SpitError
from spit.interruption import may_stop
from spit.kernels.concurrency import thread_count
from spit.kernels.numba.threads import take_one
from spit.kernels.options import TREE_COMPACTNESS, SuperpixelOptions
from spit.kernels.rules import BLOCK_SIDES
from spit.locks import locked
from spit.options import check_choice
from spit.tiles.parts import Corner, Parts
from spit.tiles.sinks import check_output, write_labels
from spit.tiles.sources import Source, open_source
from spit.tiles.tree import Cut, number_regions
from spit.trees import cost_weights

TILES = {2: 2048, 3: 128}  # sides of a part by default
MOST_PIXELS = 2**31 - 1

Progress = Callable[[int, int], object]


def superpixels_tiled(source: Any, n: int = 600, *, tile: int | None = None, out: Any = None,
                      compactness: float = TREE_COMPACTNESS, mask: Any = None, nodata: float | None = None,
                      channel_axis: Axis = "auto", spacing: npt.ArrayLike | None = None,
                      weights: npt.ArrayLike | None = None, to: Space | None = None, start_label: int = 1,
                      progress: Progress | None = None) -> Any:
    """Label the superpixels of an image or a volume that does not fit in memory.

    The labels are those of ``spit.superpixels(image, n, refine=0)``, bit for bit, whatever the tiles.

    Parameters
    ----------
    source : array or path
        Anything with shape, dtype and slices, such as ``numpy.memmap`` and the arrays of zarr, h5py and dask; a dataset
        of rasterio; or the path of a .npy, .zarr or .tif file. A GeoTIFF's nodata value and place on Earth are read.
    n : int
        Number of superpixels, as for :func:`superpixels`.
    tile : int, optional
        Pixels along a side of what is read and grown at once, rounded up to whole blocks of 64 × 64 pixels or 16³
        voxels. It changes memory and time alone. By default 2048, in volumes 128.
    out : array or path, optional
        Where the labels go: an array, which is filled, or a .npy, .zarr or .tif file, which appears when it is
        complete. A .tif has the place on Earth of the source. A stopped run is resumed by the same call, from the
        folder ``out + ".parts"``, where about 8 bytes per pixel lie in the meantime. By default an array is returned,
        and these bytes lie in a temporary folder.
    compactness, spacing, weights, start_label
        As for :func:`superpixels`.
    mask : array of bool, optional
        Pixels that belong to regions; of the shape of the labels, with slices.
    nodata : float, optional
        As for :func:`superpixels`; by default the value that the file declares.
    channel_axis : int or None, optional
        As for :func:`superpixels`; by default also what a TIFF file says of its axes. Pages of a TIFF file that could
        be bands or layers are refused.
    to : "saturated", "raw" or "lab", optional
        As for :func:`superpixels`, but necessary for floats, since their range is known only when all are read.
    progress : callable, optional
        Called with the number of steps that are done and of all, two for each part.

    Returns
    -------
    labels : ndarray of int32, array or Path
        `out`, or the labels.

    Raises
    ------
    ImageError
        If a file cannot be read.
    MissingExtra
        If a package for the file is not installed.
    TypeError, ValueError
        As for :func:`superpixels`.
    SpitError
        If another process is writing the same file.

    Notes
    -----
    The first merges of the tree stay within fixed blocks. So parts of whole blocks are grown independently, without a
    border around them, and give a region for about 30 pixels of a photo. The tree goes on with these regions in memory,
    which takes about 12 bytes per pixel of a photo; its cut is then written part by part. Threads share the parts.
    An image has at most 2³¹ − 1 pixels. Neither `refine` nor `min_size` of :func:`superpixels` is available.

    Examples
    --------
    >>> import numpy, spit
    >>> from skimage.data import chelsea
    >>> labels = spit.superpixels_tiled(chelsea(), 200, tile=128)
    >>> numpy.array_equal(labels, spit.superpixels(chelsea(), 200, refine=0))
    True
    """
    image = open_source(source, channel_axis)
    for name, number, least in (("n, the number of superpixels,", n, 1), ("tile", 1 if tile is None else tile, 1),
                                ("start_label", start_label, -MOST_PIXELS)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
            raise ValueError(f"expected {name} as a whole number{' of 1 or more' if least == 1 else ''}, got "
                             f"{number!r}")
    space = _space(image, to)
    SuperpixelOptions(method="tree", compactness=compactness)  # checks it
    factors = cost_weights((image.bands, *image.shape), compactness, weights, spacing)
    for name, array, kind in (("mask", mask, "bool"), ("out", None if isinstance(out, str | PathLike) else out, "int")):
        if array is not None and (tuple(array.shape) != image.shape or not np.dtype(array.dtype).name.startswith(kind)):
            raise ValueError(f"expected {name} of {kind} and shape {image.shape}, got {array.dtype} of shape "
                             f"{tuple(array.shape)}")
    if np.prod(image.shape, dtype=object) > MOST_PIXELS:
        raise ValueError(f"expected at most {MOST_PIXELS:,} pixels, got {image.shape}; cut the image in pieces")
    path = Path(out) if isinstance(out, str | PathLike) else None
    if path is not None:
        check_output(path, source)
    with _scratch(path) as folder:
        parts = Parts(image, mask, image.nodata if nodata is None else nodata, space, factors, int(n) - 1,
                      _sides(image, tile), folder)
        steps = 2 * len(parts.corners)
        say = progress or (lambda done, total: None)
        for part in _grown(parts):
            say(part, steps)
        cut = Cut.of(parts, int(n))
        tables = number_regions(parts, cut, int(start_label))

        def fill(labels: Any) -> None:
            for part, (corner, table) in enumerate(zip(parts.corners, tables, strict=True)):
                may_stop()
                regions = parts.regions(part)
                labels[parts.window(corner)] = table[regions].reshape(regions.shape[-len(image.shape) :])
                say(steps // 2 + part + 1, steps)

        if path is None:
            labels = np.empty(image.shape, np.int32) if out is None else out
            fill(labels)
            return labels
        write_labels(path, image.shape, image.tags, folder / f"labels{path.suffix}", fill)
        return path


def _space(image: Source, to: Space | None) -> Space:
    kind = np.dtype(image.array.dtype)
    if kind.kind not in "biuf":
        raise TypeError(f"expected an image of bool, integers or floats, got {kind}")
    if to is None and kind.kind == "f":
        raise ValueError("expected to='saturated' for floats in [0, 1], or to='raw' for any others, got neither")
    space: Space = to or ("saturated" if kind in (bool, np.uint8) else "raw")
    check_choice("to", space, ("saturated", "raw", "lab"))
    return space


def _sides(image: Source, tile: int | None) -> Corner:
    """Sides of parts, whole blocks; an image has one layer."""
    axes = len(image.shape)
    depth, height, width = (-(-(tile or TILES[axes]) // side) * side if side > 1 else 1 for side in BLOCK_SIDES[axes])
    return depth, height, width


def _grown(parts: Parts) -> Iterator[int]:
    """Grow all parts on several threads; the number that are done."""
    _ = parts.scale  # once, before there are threads
    with ThreadPoolExecutor(thread_count(), "spit", take_one) as pool:
        for done, _ in enumerate(pool.map(parts.grow, range(len(parts.corners))), 1):
            may_stop()
            yield done


@contextmanager
def _scratch(path: Path | None) -> Iterator[Path]:
    """A folder for parts, which stays if a run that writes to a path ends with an error."""
    if path is None:
        with TemporaryDirectory(prefix="spit-") as temporary:
            yield Path(temporary)
        return
    folder = path.with_name(f"{path.name}.parts")
    with locked(folder / ".lock") as mine:
        if not mine:
            raise SpitError(f"{path}: another process is writing it; wait for it, or choose another out=")
        yield folder
        rmtree(folder)
