"""The first round of an image's tree by compiled loops: rows of pixels instead of a list of edges, in vector code."""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined

D = np.float64
F = np.float32
U = np.uint64
NONE = np.iinfo(np.int64).max
"""A key above all others."""


@compiled
def link_pixels(planes: Array, scale: Array, inside: Array) -> tuple[Array, Array]:
    """Each pixel's cheapest neighbour, or itself without one, and the cost."""
    channels, height, width = planes.shape
    chosen, costs = np.empty((height, width), np.int32), np.empty((height, width), F)
    distance, cost = np.empty(width, D), np.empty(width, F)
    own, below = np.empty(width, np.uint32), np.empty(width, np.uint32)
    north, south, sides = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width + 1, np.int64)
    for x in range(width):
        south[x] = sides[x] = sides[x + 1] = NONE
        below[x] = chance(x)
    for y in range(height):
        own, below, north, south = below, own, south, north
        here, there = inside[y], inside[min(y + 1, height - 1)]
        for c in range(channels):
            _add_gaps(planes[c, y, : width - 1], planes[c, y, 1:], scale[c], c == 0, distance)
        _pixel_costs(distance, D(0), scale[channels + 1], cost)
        _pixel_keys(cost, own[: width - 1], own[1:], here[: width - 1], here[1:], sides[1:])
        if y + 1 < height:
            for x in range(width):
                below[x] = chance((y + 1) * width + x)
            for c in range(channels):
                _add_gaps(planes[c, y], planes[c, y + 1], scale[c], c == 0, distance)
            _pixel_costs(distance, scale[channels], D(0), cost)
            _pixel_keys(cost, own, below, here, there, south)
        else:
            for x in range(width):
                south[x] = NONE
        row, line = chosen[y], costs[y].view(np.int32)
        for x in range(width):
            best, step = north[x], np.int32(-width)
            if sides[x] < best:
                best, step = sides[x], np.int32(-1)
            if sides[x + 1] < best:
                best, step = sides[x + 1], np.int32(1)
            if south[x] < best:
                best, step = south[x], np.int32(width)
            row[x] = np.int32(y * width + x) + (step if best != NONE else np.int32(0))
            line[x] = best >> 32
    return chosen.reshape(height * width), costs.reshape(height * width)


@inlined
def _add_gaps(first: Array, second: Array, weight: float, new: bool, out: Array) -> None:
    """Add one band's terms of the squared distance."""
    for i in range(len(second)):
        gap = D(first[i]) - D(second[i])
        term = weight * (gap * gap)
        out[i] = term if new else out[i] + term


@inlined
def _pixel_costs(distance: Array, row: float, column: float, out: Array) -> None:
    """½ ‖x − y‖², with the terms of the position."""
    for i in range(len(out)):
        out[i] = F(D(0.5) * (distance[i] + row + column))


@inlined
def _pixel_keys(cost: Array, first: Array, second: Array, here: Array, there: Array, out: Array) -> None:
    """Keys of edges with both ends in the mask."""
    bits = cost.view(np.int32)
    for i in range(len(second)):
        key = np.int64(bits[i]) << 32 | np.int64(first[i] ^ second[i])
        out[i] = key if here[i] & there[i] else NONE


@inlined
def chance(name: int) -> Any:
    """See :func:`spit.kernels.reference.tree.chance`."""
    x = np.uint32(name)
    x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D))
    x = np.uint32((x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B))
    return np.uint32(x ^ (x >> np.uint32(16)))


@compiled
def sum_pixels(planes: Array, labels: Array, sums: Array) -> None:
    """Add up the bands, rows, columns and pixels of every region; the last are in the last column."""
    channels, height, width = planes.shape
    size = sums.shape[1] - 1
    for y in range(height):
        for x in range(width):
            row = sums[U(labels[y, x])]
            row[channels] += y
            row[channels + 1] += x
            row[size] += 1
        for c in range(channels):
            plane = planes[c, y]
            for x in range(width):
                sums[U(labels[y, x]), U(c)] += plane[x]
