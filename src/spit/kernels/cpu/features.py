"""φ in numba: the functions of ``reference/features.py``, one image per thread."""

from math import ceil, floor, log, sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spit.kernels.cpu.compilation import compiled, inlined
from spit.kernels.cpu.threads import Array, for_each_image
from spit.kernels.sampling import differentiable

RADIUS = sqrt(2 * log(1e7))  # in σ: beyond it the kernel is below 1e-7 and a bin is skipped
TABLE_STEPS = 2048  # table entries per σ: linear interpolation errs by less than 1/(8·2048²) = 3e-8


def position_histogram(labels: Tensor, offsets: Tensor, bins: int, sigma: float, boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.position_histogram`."""
    _, height, width = labels.shape
    histogram = torch.empty(int(offsets[-1]), bins * bins)
    y_weights, *y_range = _position_weights(height, max(height, width), bins, sigma)
    x_weights, *x_range = _position_weights(width, max(height, width), bins, sigma)
    x_sums = np.pad(x_weights, ((1, 0), (0, 0))).cumsum(0)
    for_each_image(_position_histogram, labels, y_weights, *y_range, x_sums, *x_range,
                   histogram.split(offsets.diff().tolist()))
    return histogram


def gradient_histogram(gradients: Tensor, labels: Tensor, offsets: Tensor, bins: int, sigma: float,
                       boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.gradient_histogram`."""
    histogram = torch.empty(int(offsets[-1]), bins * bins)
    for_each_image(_gradient_histogram, gradients, labels, bins, sigma, _gaussian_table(),
                   histogram.split(offsets.diff().tolist()))
    return histogram


def scharr(images: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.scharr`."""
    dtype, white = (torch.float32, 255) if images.dtype == torch.uint8 else (images.dtype, 1)
    gradients = torch.empty(len(images), 2, *images.shape[2:], dtype=dtype)
    for_each_image(_scharr, images, white, gradients)
    return gradients


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
                        x_last: Array, out: Array) -> None:
    """Along a run of one label the x kernel sums to a difference of two prefix sums."""
    height, width = labels.shape
    bins = y_weights.shape[1]
    count = len(out)
    histogram = np.zeros(count * bins * bins)
    sizes = np.zeros(count, np.int64)
    for y in range(height):
        start = 0
        while start < width:
            label = labels[y, start]
            end = start + 1
            while end < width and labels[y, end] == label:
                end += 1
            sizes[label] += end - start
            for kx in range(x_first[start], x_last[end - 1] + 1):
                run = x_sums[end, kx] - x_sums[start, kx]
                for ky in range(y_first[y], y_last[y] + 1):
                    histogram[(label * bins + ky) * bins + kx] += y_weights[y, ky] * run
            start = end
    _divide(histogram, sizes, out)


@inlined
def _divide(histogram: Array, sizes: Array, out: Array) -> None:
    count, bins = out.shape
    for v in range(count):
        size = max(sizes[v], 1)
        for k in range(bins):
            out[v, k] = histogram[v * bins + k] / size


def _gaussian_table() -> Array:
    """exp(−d²/2) at d = i / TABLE_STEPS, up to the radius and one step beyond for the interpolation."""
    return np.exp(-((np.arange(int(RADIUS * TABLE_STEPS) + 3) / TABLE_STEPS) ** 2) / 2)


@compiled
def _gradient_histogram(gradients: Array, labels: Array, bins: int, sigma: float, table: Array, out: Array) -> None:
    height, width = labels.shape
    count = len(out)
    histogram = np.zeros(count * bins * bins)
    sizes = np.zeros(count, np.int64)
    x_weights = np.empty(bins)
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
    _divide(histogram, sizes, out)


@inlined
def _gaussian(table: Array, place: float) -> Any:
    """exp(−d²/2) by interpolation, d being ``place`` steps of the table."""
    i = int(place)
    return table[i] + (place - i) * (table[i + 1] - table[i])


@inlined
def _taps(start: int, end: int, limit: int, places: Array, weights: Array) -> None:
    """The two pixels between which each sample lies and their weights, 0 beyond the image; see the reference."""
    resolution = len(places)
    for i in range(resolution):
        place = max((2 * i + 1) * (end - start) - resolution, 0)
        low = place // (2 * resolution)
        high = min(low + 1, end - start - 1)
        weight = (place % (2 * resolution)) / (2 * resolution)
        places[i, 0], weights[i, 0] = start + low, 1 - weight
        places[i, 1], weights[i, 1] = start + high, weight
        for tap in range(2):
            if places[i, tap] < 0 or places[i, tap] >= limit:
                places[i, tap], weights[i, tap] = 0, 0


@compiled
def _color_patches(image: Array, patches: Array, labels: Array, boxes: Array, masked: bool, adjoint: bool) -> None:
    count, channels, resolution, _ = patches.shape
    height, width = labels.shape
    ys, xs = np.empty((resolution, 2), np.int64), np.empty((resolution, 2), np.int64)
    y_weights, x_weights = np.empty((resolution, 2)), np.empty((resolution, 2))
    for n in range(count):
        _taps(boxes[n, 0], boxes[n, 2], height, ys, y_weights)
        _taps(boxes[n, 1], boxes[n, 3], width, xs, x_weights)
        for i in range(resolution):
            top, bottom = ys[i, 0], ys[i, 1]
            for j in range(resolution):
                left, right = xs[j, 0], xs[j, 1]
                a = y_weights[i, 0] * x_weights[j, 0] if not masked or labels[top, left] == n else 0.0
                b = y_weights[i, 0] * x_weights[j, 1] if not masked or labels[top, right] == n else 0.0
                c = y_weights[i, 1] * x_weights[j, 0] if not masked or labels[bottom, left] == n else 0.0
                d = y_weights[i, 1] * x_weights[j, 1] if not masked or labels[bottom, right] == n else 0.0
                for channel in range(channels):
                    plane, patch = image[channel], patches[n, channel]
                    if adjoint:
                        plane[top, left] += a * patch[i, j]
                        plane[top, right] += b * patch[i, j]
                        plane[bottom, left] += c * patch[i, j]
                        plane[bottom, right] += d * patch[i, j]
                    else:
                        patch[i, j] = (a * plane[top, left] + b * plane[top, right]
                                       + c * plane[bottom, left] + d * plane[bottom, right])


def _sample(images: Tensor, patches: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, masked: bool,
            adjoint: bool) -> None:
    counts = offsets.diff().tolist()
    for_each_image(_color_patches, images, patches.split(counts), labels, boxes.split(counts), masked, adjoint)


color_patches = differentiable(_sample)


@compiled
def _scharr(image: Array, white: int, out: Array) -> None:
    channels, height, width = image.shape
    grey = np.zeros((height, width), out.dtype)
    for channel in range(channels):
        for y in range(height):
            for x in range(width):
                grey[y, x] += image[channel, y, x]
    for y in range(height):
        above, below = max(y - 1, 0), min(y + 1, height - 1)
        for x in range(width):
            left, right = max(x - 1, 0), min(x + 1, width - 1)
            dy = 3.0 * (grey[below, left] - grey[above, left])
            dy += 10.0 * (grey[below, x] - grey[above, x])
            dy += 3.0 * (grey[below, right] - grey[above, right])
            dx = 3.0 * (grey[above, right] - grey[above, left])
            dx += 10.0 * (grey[y, right] - grey[y, left])
            dx += 3.0 * (grey[below, right] - grey[below, left])
            out[0, y, x] = dy / (16 * channels * white)
            out[1, y, x] = dx / (16 * channels * white)
