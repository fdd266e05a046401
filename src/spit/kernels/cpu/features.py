"""φ in numba: the functions of ``reference/features.py``, one image per thread.

Numpy makes the arrays that the loops fill: numba would compile each way of making one.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from spit.kernels.cpu.compilation import compiled, inlined
from spit.kernels.cpu.histograms import gradient_counter, position_counter
from spit.kernels.cpu.preprocess import convert, look_up
from spit.kernels.cpu.regions import check_labels
from spit.kernels.cpu.threads import Array, for_each_image
from spit.kernels.sampling import differentiable, side_by_side

F = np.float32


def region_features(images: Tensor, table: Tensor | None, gradients: Tensor | None, labels: Tensor, offsets: Tensor,
                    boxes: Tensor, windows: Tensor, resolution: int, masked: bool, position: tuple[int, float],
                    texture: tuple[int, float], dtype: torch.dtype = torch.float32) -> Tensor:
    """See :func:`spit.kernels.reference.region_features`."""
    check_labels(labels, offsets)
    if (torch.is_grad_enabled() and images.requires_grad) or torch.float64 in (images.dtype, dtype):
        return _side_by_side(images, table, gradients, labels, offsets, boxes, windows, resolution, masked, position,
                             texture, dtype)
    count_positions, count_gradients = position_counter(labels, *position), gradient_counter(*texture)
    curves = None if table is None else table.numpy()
    columns = images.shape[1] * resolution**2
    ends = columns + position[0] ** 2
    # From numpy, which asks for large pages: the first touch of small ones takes a fifth of the time of a batch.
    values = torch.from_numpy(np.empty((int(offsets[-1]), ends if gradients is None else ends + texture[0] ** 2), F))

    def describe(image: Array, labels: Array, windows: Array, gradients: Array | None, out: Array) -> None:
        if curves is not None:
            image = convert(image, curves)
        _sample_colors(image, out, labels, windows, masked, *_scratch(resolution))
        sizes = count_positions(labels, out, columns)
        if gradients is not None:
            count_gradients(gradients, labels, sizes, out, ends)

    counts = offsets.diff().tolist()
    for_each_image(describe, images, labels, windows.split(counts), gradients, values.split(counts))
    return values.to(dtype)


def position_histogram(labels: Tensor, offsets: Tensor, bins: int, sigma: float, boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.position_histogram`."""
    check_labels(labels, offsets)
    histogram = torch.empty(int(offsets[-1]), bins * bins)
    for_each_image(position_counter(labels, bins, sigma), labels, histogram.split(offsets.diff().tolist()), 0)
    return histogram


def gradient_histogram(gradients: Tensor, labels: Tensor, offsets: Tensor, bins: int, sigma: float,
                       boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.gradient_histogram`."""
    check_labels(labels, offsets)
    histogram = torch.empty(int(offsets[-1]), bins * bins)
    count_gradients = gradient_counter(bins, sigma)

    def count(gradients: Array, labels: Array, out: Array) -> None:
        count_gradients(gradients, labels, np.bincount(labels.reshape(-1), minlength=len(out)), out, 0)

    for_each_image(count, gradients, labels, histogram.split(offsets.diff().tolist()))
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
