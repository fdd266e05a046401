"""Masks as COCO's run-length encoding, in the compressed form that pycocotools reads."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


class Runs(TypedDict):
    """A mask by the lengths of its runs down the columns, background first, as differences in 5-bit characters."""

    size: list[int]
    counts: str


def encode_mask(mask: Mask) -> Runs:
    """The runs of a mask.

    Shape:
        mask ``(H, W)``.

    Example:
        >>> import numpy as np
        >>> from spit.segmentation.rle import encode_mask
        >>> encode_mask(np.array([[0, 1], [0, 1]], bool))
        {'size': [2, 2], 'counts': '22'}
    """
    pixels = np.asarray(mask, bool).ravel(order="F")
    edges = np.flatnonzero(np.diff(pixels)) + 1
    runs = np.diff(np.concatenate([[0] if not pixels[:1].any() else [0, 0], edges, [pixels.size]]))
    return encode_runs(mask.shape, runs)


def encode_pixels(size: Sequence[int], places: NDArray[np.int64]) -> Runs:
    """The runs of the mask that has these pixels, ascending numbers down the columns: x · height + y."""
    first = np.flatnonzero(np.diff(places, prepend=-2) > 1)  # of each run of the mask
    edges = np.stack([places[first], np.append(places[first[1:] - 1], places[-1]) + 1], 1).ravel()
    runs = np.diff(edges, prepend=0, append=size[0] * size[1])
    return encode_runs(size, runs if runs[-1] > 0 else runs[:-1])


def encode_runs(size: Sequence[int], runs: NDArray[np.int64]) -> Runs:
    """The compressed form of the lengths of runs, background first."""
    words = []
    for index, run in enumerate(runs.tolist()):
        value = run - int(runs[index - 2]) if index > 2 else run
        more = True
        while more:
            bits = value & 0x1F
            value >>= 5
            more = value != (-1 if bits & 0x10 else 0)
            words.append(chr(48 + bits + 0x20 * more))
    return {"size": [int(side) for side in size], "counts": "".join(words)}


def decode_mask(size: Sequence[int], counts: str) -> Mask:
    """The mask of ``size``, ``(H, W)``; the inverse of :func:`encode_mask`.

    Raises:
        ValueError: the runs do not fill the mask.
    """
    height, width = size
    runs: list[int] = []
    value = shift = 0
    for character in counts:
        bits = ord(character) - 48
        value |= (bits & 0x1F) << shift
        shift += 5
        if not bits & 0x20:
            value -= (1 << shift) if bits & 0x10 else 0
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value = shift = 0
    if shift or any(run < 0 for run in runs) or sum(runs) != height * width:
        raise ValueError(f"expected runs of {height} × {width} pixels, got {sum(runs):,} in {counts[:20]!r}")
    return np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(width, height).T
