"""φ by compiled loops: colour patches and gradients, ``reference/features.py``, one image per thread.

Numpy makes the arrays that the loops fill: numba would compile each way of making one.
"""

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.histograms import gradient_counter, position_counter
from spit.kernels.numba.preprocess import convert
from spit.kernels.numba.regions import check_labels, split
from spit.kernels.numba.threads import for_each_image


def region_features(images: Array, table: Array | None, gradients: Array | None, labels: Array, offsets: Array,
                    boxes: Array, windows: Array, resolution: int, masked: bool, position: tuple[int, float],
                    texture: tuple[int, float]) -> Array:
    """See :func:`spit.kernels.reference.region_features`; float32."""
    check_labels(labels, offsets)
    channels = images.shape[1]
    places, textures = channels * resolution**2, channels * resolution**2 + position[0] ** 2  # first columns
    values = np.empty((int(offsets[-1]), textures + (0 if gradients is None else texture[0] ** 2)), np.float32)
    count_positions, count_gradients = position_counter(labels.shape[1:], *position), gradient_counter(*texture)

    def describe(image: Array, gradient: Array | None, regions: Array, window: Array, out: Array) -> None:
        colors = image
        if table is not None:
            colors = np.empty(image.shape, table.dtype)
            convert(image, table, colors)
        _sample_colors(colors, out, regions, window, masked, *_scratch(resolution))
        sizes = count_positions(regions, out, places)
        if gradient is not None:
            count_gradients(gradient, regions, sizes, out, textures)

    for_each_image(describe, images, [None] * len(images) if gradients is None else gradients, labels,
                   split(windows, offsets), split(values, offsets))
    return values


def color_patches(images: Array, labels: Array, offsets: Array, boxes: Array, resolution: int,
                  masked: bool = True) -> Array:
    """See :func:`spit.kernels.reference.color_patches`."""
    patches = np.empty((len(boxes), images.shape[1], resolution, resolution), images.dtype)
    for_each_image(lambda image, out, regions, box: _sample_colors(image, out, regions, box, masked,
                                                                   *_scratch(resolution)),
                   images, split(patches.reshape(len(patches), -1), offsets), labels, split(boxes, offsets))
    return patches


def scharr(images: Array) -> Array:
    """See :func:`spit.kernels.reference.scharr`."""
    dtype, white = (np.dtype(np.float32), 255) if images.dtype == np.uint8 else (images.dtype, 1)
    batch, _, height, width = images.shape
    gradients = np.empty((batch, 2, height, width), dtype)
    for_each_image(lambda image, out: _scharr(image, white, np.empty((height + 2, width + 2), dtype), out),
                   images, gradients)
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


def _scratch(resolution: int) -> tuple[Array, Array, Array]:
    """The places, weights and corners of a patch's samples."""
    return np.empty((4, resolution), np.uint64), np.empty((4, resolution)), np.empty((4, resolution))


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
