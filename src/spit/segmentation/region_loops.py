"""Compiled loops over the pixels and the edges of regions; :mod:`spit.segmentation.graph` checks what they get."""

from typing import Any

import numpy as np

from spit.kernels.numba.compilation import compiled


@compiled
def sum_regions(pixels: Any, labels: Any, count: int) -> Any:
    """For each region the sums of the channels ``(C, H, W)``, of rows and of columns, ``(count, C + 2)``, and pixels.

    The sums are whole numbers, exact in float64.
    """
    channels, height, width = pixels.shape
    sums = np.zeros((count, channels + 2), np.int64)
    sizes = np.zeros(count, np.int64)
    for row in range(height):
        for column in range(width):
            region = labels[row, column]
            sizes[region] += 1
            for channel in range(channels):
                sums[region, channel] += pixels[channel, row, column]
            sums[region, channels] += row
            sums[region, channels + 1] += column
    return sums.astype(np.float64), sizes.astype(np.float64)


@compiled
def boundaries(labels: Any) -> Any:
    """The regions of each two neighbouring pixels of different regions, two arrays."""
    height, width = labels.shape
    known = 0
    for row in range(height):
        for column in range(width):
            known += column > 0 and labels[row, column] != labels[row, column - 1]
            known += row > 0 and labels[row, column] != labels[row - 1, column]
    one, other = np.empty(known, np.int64), np.empty(known, np.int64)
    known = 0
    for row in range(height):
        for column in range(width):
            region = labels[row, column]
            if column > 0 and region != labels[row, column - 1]:
                one[known], other[known] = labels[row, column - 1], region
                known += 1
            if row > 0 and region != labels[row - 1, column]:
                one[known], other[known] = labels[row - 1, column], region
                known += 1
    return one, other


@compiled
def join_edges(one: Any, other: Any, lengths: Any, count: int) -> Any:
    """Each pair of different ends once, in order, ``(E, 2)``, and the sum of its lengths, ``(E,)``.

    Sorted by counting, first by the larger end, then by the smaller one: linear, whatever the regions look like.
    """
    places = np.zeros(count + 1, np.int64)
    known = 0
    for edge in range(len(one)):
        if one[edge] != other[edge]:
            places[max(one[edge], other[edge]) + 1] += 1
            known += 1
    for region in range(count):
        places[region + 1] += places[region]
    by_larger: Any = np.empty(known, np.int64)
    for edge in range(len(one)):
        if one[edge] != other[edge]:
            larger = max(one[edge], other[edge])
            by_larger[places[larger]] = edge
            places[larger] += 1
    places = np.zeros(count + 1, np.int64)
    for edge in by_larger:
        places[min(one[edge], other[edge]) + 1] += 1
    for region in range(count):
        places[region + 1] += places[region]
    order: Any = np.empty(known, np.int64)
    for edge in by_larger:
        smaller = min(one[edge], other[edge])
        order[places[smaller]] = edge
        places[smaller] += 1
    pairs = np.empty((known, 2), np.int64)
    total = np.zeros(known, np.float64)
    last = -1
    for edge in order:
        smaller, larger = min(one[edge], other[edge]), max(one[edge], other[edge])
        if last < 0 or pairs[last, 0] != smaller or pairs[last, 1] != larger:
            last += 1
            pairs[last, 0], pairs[last, 1] = smaller, larger
        total[last] += lengths[edge]
    return pairs[: last + 1].copy(), total[: last + 1].copy()
