"""Images that are read window by window: arrays on disk, TIFF files, datasets of rasterio."""

import weakref
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from math import nan
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from spit.bands import Axis, axis_of
from spit.errors import ImageError, MissingExtra
from spit.kernels import Array

Window = tuple[slice, ...]
Tag = tuple[int, int, int, Any, bool]  # code, type, count, value, once in a file: as tifffile takes it

FORMATS = (".npy", ".tif", ".tiff", ".zarr")
GEOGRAPHY = (33550, 33922, 34264, 34735, 34736, 34737)  # tags of a GeoTIFF
NODATA = 42113
BANDS = "CS"  # letters of tifffile


@dataclass(frozen=True, eq=False)
class Source:
    """An image that is read window by window.

    Attributes:
        array: has shape, dtype and slices.
        channel_axis: of the bands, from 0 on; None for one band.
        nodata: the value that the file declares.
        tags: where the image lies on Earth.
        name: of the file.
    """

    array: Any
    channel_axis: int | None
    nodata: float | None = None
    tags: Sequence[Tag] = ()
    name: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Without the bands: ``(H, W)`` or ``(D, H, W)``."""
        return tuple(side for axis, side in enumerate(self.array.shape) if axis != self.channel_axis)

    @property
    def bands(self) -> int:
        """The number of bands."""
        return 1 if self.channel_axis is None else int(self.array.shape[self.channel_axis])

    def read(self, window: Window) -> Array:
        """All bands of a window, with the axes of the array."""
        axis = self.channel_axis
        whole = window if axis is None else (*window[:axis], slice(0, self.bands), *window[axis:])
        try:
            return np.asanyarray(self.array[whole])
        except (OSError, RuntimeError, ValueError, zlib.error) as error:
            if self.name is None:
                raise
            raise ImageError(f"{self.name}: expected a whole image, but its data is damaged "
                             f"({' '.join(str(error).split())}); get the file again") from error


def open_source(source: Any, channel_axis: Axis = "auto", axes: str | None = None) -> Source:
    """Whatever :func:`superpixels_tiled` takes as an image.

    Args:
        axes: a letter for each axis, C for the bands and Y, X and Z for the others, in place of ``channel_axis``.
    """
    if isinstance(source, Source):
        return source
    nodata: float | None = None
    tags: Sequence[Tag] = ()
    known: str | None = None
    if isinstance(source, str | PathLike):
        array, known, nodata, tags = _open_path(Path(source))
    elif hasattr(source, "crs") and hasattr(source, "read"):
        array, known, nodata, tags = _Raster(source), "CYX", source.nodata, _raster_tags(source)
    else:
        array = source
    if not all(hasattr(array, name) for name in ("shape", "dtype", "__getitem__")):
        raise TypeError("expected an array with shape, dtype and slices, a dataset of rasterio, or a path "
                        f"({', '.join(FORMATS)}), got {type(source).__name__}")
    shape = tuple(map(int, array.shape))
    if axes is not None:
        known, channel_axis = axes, "auto"
    if channel_axis == "auto":
        channel_axis = axis_of(shape) if known is None else _bands_of(known, shape)
    elif channel_axis is not None and not (isinstance(channel_axis, int | np.integer)
                                           and -len(shape) <= channel_axis < len(shape)):
        raise ValueError(f"expected channel_axis as one of {len(shape)} axes, None or 'auto', got {channel_axis!r}")
    opened = Source(array, None if channel_axis is None else channel_axis % len(shape), nodata, tags,
                    str(source) if isinstance(source, str | PathLike) else None)
    if len(opened.shape) not in (2, 3) or 0 in shape:
        raise ValueError(f"expected 2 axes of pixels or 3 of voxels beside channel_axis={channel_axis}, got shape "
                         f"{shape}")
    return opened


def optional(package: str, purpose: str) -> Any:
    """A package of the extra ``large``; MissingExtra says how to get it."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise MissingExtra(package, "large", purpose) from error


def _bands_of(axes: str, shape: tuple[int, ...]) -> int | None:
    """The axis of the bands according to a letter for each axis."""
    letters = "".join("C" if letter in BANDS else letter for letter in axes.upper())
    if len(letters) != len(shape) or letters.replace("C", "", 1) not in ("YX", "ZYX"):
        raise ValueError(f"expected axes Y, X and for a volume Z, and C for bands, got {axes} for shape {shape}; give "
                         "axes CYX or YXC (channel_axis=0 or -1) for bands, or ZYX (channel_axis=None) for a volume")
    return letters.find("C") if "C" in letters else None


def _open_path(path: Path) -> tuple[Any, str | None, float | None, Sequence[Tag]]:
    """Array, axes if the file says them, nodata and tags."""
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ImageError(f"{path}: expected {', '.join(FORMATS)}, got {kind or 'no suffix'}; read it otherwise and "
                         "give the array")
    if not path.exists():
        raise ImageError(f"{path}: expected an image, but no such path exists; check the spelling")
    try:
        if kind == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False), None, None, ()
        if kind == ".zarr":
            array = optional("zarr", "reading zarr").open(str(path), mode="r")
            if not hasattr(array, "shape"):
                raise ImageError(f"{path}: expected an array, got a group of {', '.join(sorted(array))}; give one of "
                                 "them as zarr.open(...)[name]")
            return array, None, None, ()
        return _open_tiff(path)
    except (OSError, ValueError, IndexError) as error:
        raise ImageError(f"{path}: expected a readable {kind} ({' '.join(str(error).split())})") from error


def _open_tiff(path: Path) -> tuple[Any, str, float | None, Sequence[Tag]]:
    tifffile = optional("tifffile", "reading large TIFF")
    file = tifffile.TiffFile(path)
    with ExitStack() as stack:
        stack.callback(file.close)
        series = file.series[0]
        if series.dataoffset is None:
            zarr = optional("zarr", "reading TIFF in windows")
            array = zarr.open(series.aszarr(level=0), mode="r")
        else:  # one run of bytes, which zarr would read as a whole
            array = tifffile.memmap(path, mode="r")
        weakref.finalize(array, stack.pop_all().close)
    tags = series.keyframe.tags
    text = str(tags[NODATA].value).strip() if NODATA in tags else None
    nodata = None if text is None else nan if text.lower() == "nan" else float(text)
    return array, series.axes, nodata, geography(tags)


def geography(tags: Any) -> list[Tag]:
    """The tags of a page of tifffile that say where it lies."""
    return [(tag.code, int(tag.dtype), tag.count, tag.value, True) for tag in tags if tag.code in GEOGRAPHY]


class _Raster:
    """A dataset of rasterio as an array ``(C, H, W)``; threads take turns."""

    def __init__(self, dataset: Any) -> None:
        self._dataset, self._lock = dataset, Lock()
        self.shape, self.dtype = (dataset.count, dataset.height, dataset.width), np.dtype(dataset.dtypes[0])

    def __getitem__(self, window: Window) -> Array:
        rows, columns = (range(side)[one] for one, side in zip(window[-2:], self.shape[1:], strict=True))
        with self._lock:
            if rows.step == 1:
                return self._rows(rows.start, rows.stop, columns)
            return np.concatenate([self._rows(row, row + 1, columns) for row in rows], 1)

    def _rows(self, first: int, last: int, columns: range) -> Array:
        read: Array = self._dataset.read(window=((first, last), (columns.start, columns.stop)))
        return read[:, :, :: columns.step]


def _raster_tags(dataset: Any) -> list[Tag]:
    """The tags of a GeoTIFF of the dataset's place, if tifffile is there to write them."""
    try:
        tifffile, memory = import_module("tifffile"), import_module("rasterio.io").MemoryFile
    except ModuleNotFoundError:
        return []
    with memory() as file:
        with file.open(driver="GTiff", width=1, height=1, count=1, dtype="uint8", crs=dataset.crs,
                       transform=dataset.transform) as small:
            small.write(np.zeros((1, 1, 1), np.uint8))
        file.seek(0)
        with tifffile.TiffFile(file) as page:
            return geography(page.pages[0].tags)
