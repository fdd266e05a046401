"""Regions of a partition by compiled loops: boxes, and the way up a hierarchy."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled
from spit.kernels.numba.threads import for_each_image


def check_labels(labels: Iterable[Array], offsets: Array, lowest: int = 0) -> None:
    """Raise ValueError if a loop would index outside its memory: labels can be changed after they were checked."""
    for image, count in zip(labels, np.diff(offsets).tolist(), strict=True):
        low, high = image.min(), image.max()
        if low < lowest or high >= count:
            raise ValueError(f"expected labels 0 to {count - 1}, got {low} to {high}; they were changed after the "
                             "partition was made: make another one from them")


def split(values: Array, offsets: Array) -> list[Array]:
    """The rows of each image."""
    ends = offsets.tolist()
    return [values[first:last] for first, last in pairwise(ends)]


def region_boxes(labels: Array, offsets: Array, rows: int | None = None) -> Array:
    """See :func:`spit.kernels.reference.region_boxes`."""
    check_labels(labels, offsets)
    boxes = np.zeros((int(offsets[-1]) if rows is None else rows, 4), np.int32)
    for_each_image(_fill_boxes, labels, split(boxes, offsets))
    return boxes


@compiled
def _fill_boxes(labels: Array, out: Array) -> None:
    height, width = labels.shape
    for v in range(len(out)):
        out[v, 0], out[v, 1] = height, width
    for y in range(height):
        start = 0
        while start < width:  # a run of one label at a time
            label = labels[y, start]
            end = start + 1
            while end < width and labels[y, end] == label:
                end += 1
            box = out[np.uint64(label)]
            box[0] = min(box[0], y)
            box[1] = min(box[1], start)
            box[2] = y + 1
            box[3] = max(box[3], end)
            start = end
    for v in range(len(out)):
        if out[v, 2] == 0:  # without a pixel
            out[v, 0], out[v, 1] = 0, 0


def climb(levels: Sequence[Array], out: Array) -> None:
    """The region that holds each pixel of an image after several levels, from the parents of each."""
    upper = levels[-1]
    for lower in levels[-2:0:-1]:  # from the coarse end: only the last step is as long as the image
        above = np.empty_like(lower)
        gather(upper, lower, above)
        upper = above
    if len(levels) > 1:
        gather(upper, levels[0], out)
    else:
        out[...] = upper


@compiled
def gather(values: Array, places: Array, out: Array) -> None:
    """``out[i] = values[places[i]]``, faster than in numpy."""
    for i in range(len(places)):
        out[i] = values[places[i]]
