"""φ in numba: the functions of ``reference/features.py``, one image per thread.

Numpy makes the arrays that the loops fill: numba would compile each way of making one.
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, floor, log, sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spit.kernels.cpu.compilation import compiled, inlined
from spit.kernels.cpu.preprocess import convert, look_up
from spit.kernels.cpu.threads import Array, for_each_image
from spit.kernels.sampling import differentiable, side_by_side

RADIUS = sqrt(2 * log(1e7))  # in σ: beyond it the kernel is below 1e-7 and a bin is skipped
TABLE_STEPS = 2048  # table entries per σ: linear interpolation errs by less than 1/(8·2048²) = 3e-8
MOST_ROWS = 2**15  # of the table for four bins
RIM = 2  # bins around the histogram, which only kernels at its border reach
F = np.float32
U = np.uint64  # numba asks of a signed index whether it counts from the end


def region_features(images: Tensor, table: Tensor | None, gradients: Tensor | None, labels: Tensor, offsets: Tensor,
                    boxes: Tensor, windows: Tensor, resolution: int, masked: bool, position: tuple[int, float],
                    texture: tuple[int, float], dtype: torch.dtype = torch.float32) -> Tensor:
    """See :func:`spit.kernels.reference.region_features`."""
    if (torch.is_grad_enabled() and images.requires_grad) or torch.float64 in (images.dtype, dtype):
        return _side_by_side(images, table, gradients, labels, offsets, boxes, windows, resolution, masked, position,
                             texture, dtype)
    count_positions, count_gradients = _positions(labels, *position), _gradients(*texture)
    curves = None if table is None else table.numpy()
    columns = images.shape[1] * resolution**2
    ends = columns + position[0] ** 2
    # From numpy, which asks for large pages: the first touch of small ones takes a fifth of the time of a batch.
    values = torch.from_numpy(np.empty((int(offsets[-1]), ends if gradients is None else ends + texture[0] ** 2), F))

    def describe(image: Array, labels: Array, windows: Array, gradients: Array | None, out: Array) -> None:
        if curves is not None:
            image = convert(image, curves)
        _sample_colors(image, out, labels, windows, masked, *_scratch(resolution))
        count_positions(labels, out, columns)
        if gradients is not None:
            count_gradients(gradients, labels, out, ends)

    counts = offsets.diff().tolist()
    for_each_image(describe, images, labels, windows.split(counts), gradients, values.split(counts))
    return values.to(dtype)


def position_histogram(labels: Tensor, offsets: Tensor, bins: int, sigma: float, boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.position_histogram`."""
    histogram = torch.empty(int(offsets[-1]), bins * bins)
    for_each_image(_positions(labels, bins, sigma), labels, histogram.split(offsets.diff().tolist()), 0)
    return histogram


def gradient_histogram(gradients: Tensor, labels: Tensor, offsets: Tensor, bins: int, sigma: float,
                       boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.gradient_histogram`."""
    histogram = torch.empty(int(offsets[-1]), bins * bins)
    for_each_image(_gradients(bins, sigma), gradients, labels, histogram.split(offsets.diff().tolist()), 0)
    return histogram


def scharr(images: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.scharr`."""
    dtype, white = (torch.float32, 255) if images.dtype == torch.uint8 else (images.dtype, 1)
    batch, _, height, width = images.shape
    gradients = torch.empty(batch, 2, height, width, dtype=dtype)

    def differentiate(image: Array, out: Array) -> None:
        _scharr(image, white, np.empty((height + 2, width + 2), out.dtype), out)

    for_each_image(differentiate, images, gradients)
    return gradients


def _positions(labels: Tensor, bins: int, sigma: float) -> Callable[[Array, Array, int], None]:
    """Counts the positions of one image into ``bins²`` columns of its regions' rows, from a column on."""
    height, width = labels.shape[1:]
    rows = _position_weights(height, max(height, width), bins, sigma)
    columns = _position_sums(width, max(height, width), bins, sigma)

    def count(labels: Array, out: Array, first: int) -> None:
        _position_histogram(labels, *rows, *columns, *_zeros(len(out), bins), out, first)

    return count


def reaches_four(bins: int, sigma: float) -> bool:
    """Whether a kernel of gradients reaches no more than the four bins around it; nor is it too narrow for a table."""
    return TABLE_STEPS / MOST_ROWS <= 0.5 * bins * sigma <= RIM / RADIUS


def _gradients(bins: int, sigma: float) -> Callable[[Array, Array, Array, int], None]:
    """Counts the gradients of one image likewise."""
    width = 0.5 * bins * sigma

    def count(gradients: Array, labels: Array, out: Array, first: int) -> None:
        if reaches_four(bins, sigma):
            _four_bins(gradients, labels, bins, width, _four_weights(width), *_zeros(len(out), bins + 2 * RIM), out,
                       first)
        else:
            _gradient_histogram(gradients, labels, bins, sigma, _gaussian_table(), np.empty(bins),
                                *_zeros(len(out), bins), out, first)

    return count


def _zeros(count: int, bins: int) -> tuple[Array, Array]:
    """An empty histogram for each region, and their sizes."""
    return np.zeros(count * bins * bins), np.zeros(count, np.int64)


@lru_cache(maxsize=32)
def _position_sums(size: int, longest: int, bins: int, sigma: float) -> tuple[Array, Array, Array]:
    """:func:`_position_weights`, the kernels as prefix sums."""
    weights, first, last = _position_weights(size, longest, bins, sigma)
    return np.pad(weights, ((1, 0), (0, 0))).cumsum(0), first, last


@lru_cache(maxsize=32)
def _position_weights(size: int, longest: int, bins: int, sigma: float) -> tuple[Array, Array, Array]:
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
def _four_weights(width: float) -> Array:
    """The kernels of the two bins on either side of a place, for places from one bin's centre to the next's.

    Args:
        width: σ in bins.
    """
    rows = ceil(TABLE_STEPS / width)
    distance = np.abs(np.arange(rows + 2)[:, None] / rows + 1 - np.arange(4)) / width
    return np.where(distance <= RADIUS, np.exp(-(distance**2) / 2), 0.0).reshape(-1)


@compiled
def _four_bins(gradients: Array, labels: Array, bins: int, sigma: float, table: Array, histogram: Array, sizes: Array,
               out: Array, column: int) -> None:
    """The gradient histogram if the kernel, σ in bins, reaches two bins to either side at most.

    Most places are so far from the outer ones of the four that only two bins in each direction count.
    """
    half = 0.5 * bins
    wide = U(bins + 2 * RIM)
    rows = len(table) // 4 - 2
    inner = 1.5 - RADIUS * sigma  # from the middle between two bins, how far their neighbours are out of reach
    for y in range(len(labels)):
        here, down, across = labels[y], gradients[0, y], gradients[1, y]
        for x in range(len(here)):
            label = U(here[x])
            sizes[label] += 1
            y_place = (down[x] + 1.0) * half + (RIM - 0.5)  # in bins, the rim among them; bin k has its centre at k
            x_place = (across[x] + 1.0) * half + (RIM - 0.5)
            ky, kx = min(max(int(y_place), 1), bins + 1), min(max(int(x_place), 1), bins + 1)
            y_rest, x_rest = y_place - ky, x_place - kx
            few = max(abs(y_rest - 0.5), abs(x_rest - 0.5)) < inner
            yi, xi = min(max(int(y_rest * rows), 0), rows), min(max(int(x_rest * rows), 0), rows)
            y_rest, x_rest = y_rest * rows - yi, x_rest * rows - xi
            i, j = U(4 * xi), U(4 * yi)
            b = table[i + U(1)] + x_rest * (table[i + U(5)] - table[i + U(1)])
            c = table[i + U(2)] + x_rest * (table[i + U(6)] - table[i + U(2)])
            row = (label * wide + U(ky)) * wide + U(kx)
            if few:
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
            sizes[label] += 1
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


@inlined
def _taps(start: int, end: int, limit: int, places: Array, weights: Array) -> None:
    """The two pixels between which each sample lies and their weights, 0 beyond the image; see the reference."""
    resolution = places.shape[1]
    for i in range(resolution):
        place = max((2 * i + 1) * (end - start) - resolution, 0)
        low = start + place // (2 * resolution)
        high = min(low + 1, end - 1)
        weight = (place % (2 * resolution)) / (2 * resolution)
        has_low, has_high = (low >= 0) & (low < limit), (high >= 0) & (high < limit)
        places[0, i], weights[0, i] = min(max(low, 0), limit - 1), 1 - weight if has_low else 0
        places[1, i], weights[1, i] = min(max(high, 0), limit - 1), weight if has_high else 0


@inlined
def _corners(i: int, n: int, places: Array, weights: Array, labels: Array, masked: bool, corners: Array) -> None:
    """The weights of the four pixels around each sample of row i of patch n."""
    above, below = labels[places[0, i]], labels[places[1, i]]
    north, south = weights[0, i], weights[1, i]
    for j in range(corners.shape[1]):
        left, right = places[2, j], places[3, j]
        west, east = weights[2, j], weights[3, j]
        corners[0, j] = north * west if not masked or above[left] == n else 0.0
        corners[1, j] = north * east if not masked or above[right] == n else 0.0
        corners[2, j] = south * west if not masked or below[left] == n else 0.0
        corners[3, j] = south * east if not masked or below[right] == n else 0.0


@compiled
def _sample_colors(image: Array, out: Array, labels: Array, boxes: Array, masked: bool, places: Array,
                   weights: Array, corners: Array) -> None:
    """Fill the first columns of ``out``, channel by channel."""
    resolution = places.shape[1]
    for n in range(len(out)):
        _taps(boxes[n, 0], boxes[n, 2], labels.shape[0], places[:2], weights[:2])
        _taps(boxes[n, 1], boxes[n, 3], labels.shape[1], places[2:], weights[2:])
        for i in range(resolution):
            _corners(i, n, places, weights, labels, masked, corners)
            for channel in range(len(image)):
                top, bottom = image[channel, places[0, i]], image[channel, places[1, i]]
                line = out[n, (channel * resolution + i) * resolution :]
                for j in range(resolution):
                    left, right = places[2, j], places[3, j]
                    line[j] = (corners[0, j] * top[left] + corners[1, j] * top[right]
                               + corners[2, j] * bottom[left] + corners[3, j] * bottom[right])


@compiled
def _sample_adjoint(image: Array, out: Array, labels: Array, boxes: Array, masked: bool, places: Array,
                    weights: Array, corners: Array) -> None:
    """Add to the image what :func:`_sample_colors` reads of it, times what stands in ``out``."""
    resolution = places.shape[1]
    for n in range(len(out)):
        _taps(boxes[n, 0], boxes[n, 2], labels.shape[0], places[:2], weights[:2])
        _taps(boxes[n, 1], boxes[n, 3], labels.shape[1], places[2:], weights[2:])
        for i in range(resolution):
            _corners(i, n, places, weights, labels, masked, corners)
            for channel in range(len(image)):
                for j in range(resolution):
                    value = out[n, (channel * resolution + i) * resolution + j]
                    for corner in range(4):
                        image[channel, places[corner // 2, i], places[2 + corner % 2, j]] += corners[corner, j] * value


def _scratch(resolution: int) -> tuple[Array, Array, Array]:
    """The places, weights and corners of a patch's samples."""
    return np.empty((4, resolution), np.uint64), np.empty((4, resolution)), np.empty((4, resolution))


def _sample(images: Tensor, patches: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, masked: bool,
            adjoint: bool) -> None:
    counts = offsets.diff().tolist()
    loop = _sample_adjoint if adjoint else _sample_colors

    def sample(*given: Any) -> None:
        loop(*given, *_scratch(patches.shape[-1]))

    for_each_image(sample, images, patches.flatten(1).split(counts), labels, boxes.split(counts), masked)


color_patches = differentiable(_sample)
_side_by_side = side_by_side(look_up, color_patches, position_histogram, gradient_histogram)


@compiled
def _scharr(image: Array, white: int, grey: Array, out: Array) -> None:
    """``grey`` gets the sum of the channels, with a rim that repeats its border."""
    channels, height, width = image.shape
    for y in range(height):
        line = grey[y + 1]
        for channel in range(channels):
            row = image[channel, y]
            for x in range(width):
                line[x + 1] = row[x] if channel == 0 else line[x + 1] + row[x]
        line[0], line[width + 1] = line[1], line[width]
    for x in range(width + 2):
        grey[0, x], grey[height + 1, x] = grey[1, x], grey[height, x]
    scale = 16 * channels * white
    for y in range(height):
        above, here, below = grey[y], grey[y + 1], grey[y + 2]
        down, across = out[0, y], out[1, y]
        for x in range(width):
            dy = 3.0 * (below[x] - above[x])
            dy += 10.0 * (below[x + 1] - above[x + 1])
            dy += 3.0 * (below[x + 2] - above[x + 2])
            dx = 3.0 * (above[x + 2] - above[x])
            dx += 10.0 * (here[x + 2] - here[x])
            dx += 3.0 * (below[x + 2] - below[x])
            down[x] = dy / scale
            across[x] = dx / scale
