"""Label maps that are written window by window, and appear whole or not at all."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spit.tiles.sources import FORMATS, NODATA, Tag, optional

CHUNK = 512  # side of a chunk of zarr


def check_output(path: Path, source: Any) -> None:
    """Refuse a path that no label map can be written to, before the work."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"expected out= as an array or a path ({', '.join(FORMATS)}), got {path}")
    if path.is_dir():
        raise ValueError(f"expected out= as a new path, got the folder {path}; remove it or choose another")
    if isinstance(source, str | os.PathLike) and path.exists() and path.samefile(source):
        raise ValueError(f"expected out= as another file than the image, got {path}")
    if path.suffix.lower() == ".zarr":
        optional("zarr", "writing zarr")
    elif path.suffix.lower() != ".npy":
        optional("tifffile", "writing TIFF")


def write_labels(path: Path, shape: tuple[int, ...], tags: Sequence[Tag], draft: Path,
                 fill: Callable[[Any], None]) -> None:
    """Make an int32 array of a shape in the file ``draft``, let ``fill`` write to it, and move it to ``path``."""
    if path.suffix.lower() == ".npy":
        labels = np.lib.format.open_memmap(draft, "w+", np.dtype(np.int32), shape)
    elif path.suffix.lower() == ".zarr":
        chunks = tuple(min(CHUNK if len(shape) == 2 else CHUNK // 8, side) for side in shape)
        labels = optional("zarr", "writing zarr").open(str(draft), mode="w", shape=shape, chunks=chunks, dtype="int32")
    else:
        nodata = [(NODATA, 2, 2, "0", True)] if tags else []
        labels = optional("tifffile", "writing TIFF").memmap(
            draft, shape=shape, dtype=np.int32, photometric="minisblack", extratags=[*tags, *nodata],
            metadata={"axes": "ZYX"[-len(shape) :]})
    fill(labels)
    if isinstance(labels, np.memmap):
        labels.flush()
    del labels
    os.replace(draft, path)
