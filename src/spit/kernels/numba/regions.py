"""Regions of a partition as compiled loops: boxes, and the way up a hierarchy."""

from collections.abc import Sequence

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled


def climb(levels: Sequence[Array], out: Array) -> None:
    """:func:`compose` of one image."""
    upper = levels[-1]
    # From the coarse end: only the last step is as long as the image.
    for lower in levels[-2:0:-1]:
        above = np.empty_like(lower)
        step(lower, upper, above)
        upper = above
    if len(levels) > 1:
        step(levels[0], upper, out)
    else:
        out[...] = upper


@compiled
def step(lower: Array, upper: Array, out: Array) -> None:
    for v in range(len(lower)):
        out[v] = upper[lower[v]]


@compiled
def boxes(labels: Array, out: Array) -> None:
    height, width = labels.shape
    for v in range(len(out)):
        out[v, 0], out[v, 1], out[v, 2], out[v, 3] = height, width, 0, 0
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
