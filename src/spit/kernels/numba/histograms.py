"""Histograms of positions and gradients by compiled loops.

Numpy makes the arrays that the loops fill: numba would compile each way of making one.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil, floor, log, sqrt
from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.regions import check_labels, split
from spit.kernels.numba.threads import for_each_image

RADIUS = sqrt(2 * log(1e7))  # in σ: beyond it the kernel is below 1e-7 and a bin is skipped
TABLE_STEPS = 2048  # table entries per σ: linear interpolation errs by less than 1/(8·2048²) = 3e-8
MOST_ROWS = 2**15  # of the table for four bins
RIM = 2  # bins around the histogram, which only kernels at its border reach
U = np.uint64  # numba asks of a signed index whether it counts from the end


def position_histogram(labels: Array, offsets: Array, bins: int, sigma: float, boxes: Array | None = None) -> Array:
    """See :func:`spit.kernels.reference.position_histogram`."""
    check_labels(labels, offsets)
    histogram = np.empty((int(offsets[-1]), bins * bins), np.float32)
    count = position_counter(labels.shape[1:], bins, sigma)
    for_each_image(lambda regions, out: count(regions, out, 0), labels, split(histogram, offsets))
    return histogram


def gradient_histogram(gradients: Array, labels: Array, offsets: Array, bins: int, sigma: float,
                       boxes: Array | None = None) -> Array:
    """See :func:`spit.kernels.reference.gradient_histogram`."""
    check_labels(labels, offsets)
    histogram = np.empty((int(offsets[-1]), bins * bins), np.float32)
    count = gradient_counter(bins, sigma)
    for_each_image(lambda gradient, regions, out: count(
        gradient, regions, np.bincount(regions.reshape(-1), minlength=len(out)), out, 0),
        gradients, labels, split(histogram, offsets))
    return histogram


def position_counter(shape: Sequence[int], bins: int, sigma: float) -> Callable[[Array, Array, int], Array]:
    """A function that writes position histograms of an image of a shape into ``out[:, first : first + bins²]``.

    It returns the sizes of the regions.
    """
    height, width = shape
    rows = position_weights(height, max(height, width), bins, sigma)
    columns = position_sums(width, max(height, width), bins, sigma)

    def count(labels: Array, out: Array, first: int) -> Array:
        sizes = np.zeros(len(out), np.int64)
        _position_histogram(labels, *rows, *columns, np.zeros(len(out) * bins * bins), sizes, out, first)
        return sizes

    return count


def reaches_four(bins: int, sigma: float) -> bool:
    """Whether a kernel of gradients reaches no more than the four bins around it; nor is it too narrow for a table."""
    return TABLE_STEPS / MOST_ROWS <= 0.5 * bins * sigma <= RIM / RADIUS


def gradient_counter(bins: int, sigma: float) -> Callable[[Array, Array, Array, Array, int], None]:
    """A function that writes gradient histograms of an image, whose regions have known sizes, likewise."""
    width = 0.5 * bins * sigma

    def count(gradients: Array, labels: Array, sizes: Array, out: Array, first: int) -> None:
        if reaches_four(bins, sigma):
            shape = 2, labels.shape[1]
            _four_bins(gradients, labels, bins, width, four_weights(width), np.empty(shape, np.int32),
                       np.empty(shape, np.int32), np.empty(shape), np.zeros(len(out) * (bins + 2 * RIM) ** 2), sizes,
                       out, first)
        else:
            _gradient_histogram(gradients, labels, bins, sigma, _gaussian_table(), np.empty(bins),
                                np.zeros(len(out) * bins * bins), sizes, out, first)

    return count


@lru_cache(maxsize=32)
def position_sums(size: int, longest: int, bins: int, sigma: float) -> tuple[Array, Array, Array]:
    """:func:`position_weights`, the kernels as prefix sums."""
    weights, first, last = position_weights(size, longest, bins, sigma)
    return np.pad(weights, ((1, 0), (0, 0))).cumsum(0), first, last


@lru_cache(maxsize=32)
def position_weights(size: int, longest: int, bins: int, sigma: float) -> tuple[Array, Array, Array]:
    """The kernel of each row (or column) at each bin, and the first and last bin within its radius."""
    place = 2 * np.arange(size) + 1 - size + longest  # (y' + 1)·max(H, W)
    if sigma == 0:
        first = last = place * bins // (2 * longest)
        return (first[:, None] == np.arange(bins)).astype(np.float64), first, last
    centres = (2 * np.arange(bins) + 1) / bins - 1
    distance = np.abs((place / longest - 1)[:, None] - centres) / sigma
    weights = np.where(distance <= RADIUS, np.exp(-(distance**2) / 2), 0.0)
    # A row too far from every bin has first > last, and its loop is empty.
    first = np.searchsorted(centres, place / longest - 1 - RADIUS * sigma)
    last = np.searchsorted(centres, place / longest - 1 + RADIUS * sigma) - 1
    return weights, first, last


@compiled
def _position_histogram(labels: Array, y_weights: Array, y_first: Array, y_last: Array, x_sums: Array, x_first: Array,
                        x_last: Array, histogram: Array, sizes: Array, out: Array, column: int) -> None:
    """Along a run of one label the x kernel sums to a difference of two prefix sums."""
    bins = y_weights.shape[1]
    for y in range(len(labels)):
        here, weights = labels[y], y_weights[y]
        low, end_y = y_first[y], y_last[y] + 1
        start = 0
        while start < len(here):
            label = here[start]
            end = start + 1
            while end < len(here) and here[end] == label:
                end += 1
            sizes[label] += end - start
            own = U(label) * U(bins * bins)
            before, after = x_sums[start], x_sums[end]
            for kx in range(x_first[start], x_last[end - 1] + 1):
                run = after[kx] - before[kx]
                for ky in range(low, end_y):
                    histogram[own + U(ky * bins + kx)] += weights[ky] * run
            start = end
    for v in range(len(out)):
        answer, size = out[v, column:], np.float64(max(sizes[v], 1))
        first = U(v * bins * bins)
        for k in range(bins * bins):
            answer[U(k)] = histogram[first + U(k)] / size


@lru_cache(maxsize=1)
def _gaussian_table() -> Array:
    """exp(−d²/2) at d = i / TABLE_STEPS, up to the radius and one step beyond for the interpolation."""
    return np.exp(-((np.arange(int(RADIUS * TABLE_STEPS) + 3) / TABLE_STEPS) ** 2) / 2)


@lru_cache(maxsize=8)
def four_weights(width: float) -> Array:
    """The kernels of the two bins on either side of a place, for places from one bin's centre to the next's.

    Args:
        width: σ in bins.
    """
    rows = ceil(TABLE_STEPS / width)
    distance = np.abs(np.arange(rows + 2)[:, None] / rows + 1 - np.arange(4)) / width
    return np.where(distance <= RADIUS, np.exp(-(distance**2) / 2), 0.0).reshape(-1)


@inlined
def _places(gradients: Array, bins: int, rows: int, corners: Array, indices: Array, rests: Array) -> None:
    """For each gradient of a row, the bin below it, and where between this and the next, in rows of the table."""
    half = 0.5 * bins
    last, most = np.int32(bins + 1), np.int32(rows)
    for x in range(len(gradients)):  # with 32 bits for integers, so that LLVM turns it into vector code
        place = (gradients[x] + 1.0) * half + (RIM - 0.5)  # in bins, the rim among them; bin k has its centre at k
        corner = min(max(np.int32(place), np.int32(1)), last)
        step = (place - corner) * rows
        index = min(max(np.int32(step), np.int32(0)), most)
        corners[x], indices[x], rests[x] = corner, index, step - index


@compiled
def _four_bins(gradients: Array, labels: Array, bins: int, sigma: float, table: Array, corners: Array, indices: Array,
               rests: Array, histogram: Array, sizes: Array, out: Array, column: int) -> None:
    """The gradient histogram if the kernel, σ in bins, reaches two bins to either side at most.

    Most places are so far from the outer ones of the four that only two bins in each direction count.
    """
    wide = U(bins + 2 * RIM)
    rows = len(table) // 4 - 2
    low = ceil((RADIUS * sigma - 1) * rows) + 1  # from here to ``high``, the outer bins have 0 in the table
    high = rows - low
    for y in range(len(labels)):
        here = labels[y]
        for direction in range(2):
            _places(gradients[direction, y], bins, rows, corners[direction], indices[direction], rests[direction])
        for x in range(len(here)):
            label = U(here[x])
            yi, xi = indices[0, x], indices[1, x]
            y_rest, x_rest = rests[0, x], rests[1, x]
            i, j = U(4) * U(xi), U(4) * U(yi)
            b = table[i + U(1)] + x_rest * (table[i + U(5)] - table[i + U(1)])
            c = table[i + U(2)] + x_rest * (table[i + U(6)] - table[i + U(2)])
            row = (label * wide + U(corners[0, x])) * wide + U(corners[1, x])
            if (yi >= low) & (yi < high) & (xi >= low) & (xi < high):
                north = table[j + U(1)] + y_rest * (table[j + U(5)] - table[j + U(1)])
                south = table[j + U(2)] + y_rest * (table[j + U(6)] - table[j + U(2)])
                histogram[row] += north * b
                histogram[row + U(1)] += north * c
                histogram[row + wide] += south * b
                histogram[row + wide + U(1)] += south * c
            else:
                a = table[i] + x_rest * (table[i + U(4)] - table[i])
                d = table[i + U(3)] + x_rest * (table[i + U(7)] - table[i + U(3)])
                row -= wide + U(1)
                for _ in range(4):
                    weight = table[j] + y_rest * (table[j + U(4)] - table[j])
                    histogram[row] += weight * a
                    histogram[row + U(1)] += weight * b
                    histogram[row + U(2)] += weight * c
                    histogram[row + U(3)] += weight * d
                    j += U(1)
                    row += wide
    for v in range(len(out)):
        answer, size = out[v, column:], np.float64(max(sizes[v], 1))
        for ky in range(bins):
            first = (U(v) * wide + U(ky + RIM)) * wide + U(RIM)
            for kx in range(bins):
                answer[U(ky * bins + kx)] = histogram[first + U(kx)] / size


@compiled
def _gradient_histogram(gradients: Array, labels: Array, bins: int, sigma: float, table: Array, x_weights: Array,
                        histogram: Array, sizes: Array, out: Array, column: int) -> None:
    height, width = labels.shape
    half = 0.5 * bins
    reach = half * RADIUS * sigma  # in bins
    steps = TABLE_STEPS / (half * sigma) if sigma > 0 else 0.0  # table entries per bin
    for y in range(height):
        for x in range(width):
            label = labels[y, x]
            if sigma == 0:
                ky = min(max(floor((gradients[0, y, x] + 1.0) * half), 0), bins - 1)
                kx = min(max(floor((gradients[1, y, x] + 1.0) * half), 0), bins - 1)
                histogram[(label * bins + ky) * bins + kx] += 1
                continue
            y_place = (gradients[0, y, x] + 1.0) * half - 0.5  # in bins: bin k has its centre at k
            x_place = (gradients[1, y, x] + 1.0) * half - 0.5
            x_first = max(0, ceil(x_place - reach))
            x_end = min(bins, floor(x_place + reach) + 1)
            for kx in range(x_first, x_end):
                x_weights[kx] = _gaussian(table, abs(x_place - kx) * steps)
            for ky in range(max(0, ceil(y_place - reach)), min(bins, floor(y_place + reach) + 1)):
                y_weight = _gaussian(table, abs(y_place - ky) * steps)
                row = (label * bins + ky) * bins
                for kx in range(x_first, x_end):
                    histogram[row + kx] += y_weight * x_weights[kx]
    for v in range(len(out)):
        for k in range(bins * bins):
            out[v, column + k] = histogram[v * bins * bins + k] / max(sizes[v], 1)


@inlined
def _gaussian(table: Array, place: float) -> Any:
    """exp(−d²/2) by interpolation, d being ``place`` steps of the table."""
    i = int(place)
    return table[i] + (place - i) * (table[i + 1] - table[i])
