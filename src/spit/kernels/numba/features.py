"""φ as compiled loops: colour patches and gradients.

Numpy makes the arrays that the loops fill: numba would compile each way of making one.
"""

from collections.abc import Callable, Sequence

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.histograms import gradient_counter, position_counter
from spit.kernels.numba.preprocess import convert


def feature_width(channels: int, resolution: int, position: tuple[int, float],
                  texture: tuple[int, float] | None) -> int:
    """Columns of :func:`describer`: C·K² for colour, K² for position and K² for gradients."""
    return channels * resolution**2 + position[0] ** 2 + (0 if texture is None else texture[0] ** 2)


def describer(shape: Sequence[int], table: Array | None, resolution: int, masked: bool, position: tuple[int, float],
              texture: tuple[int, float]) -> Callable[[Array, Array, Array, Array | None, Array], None]:
    """φ of images of one shape, ``(H, W)``: a function of ``(image, labels, windows, gradients, out)``, to fill.

    The arguments are those of :func:`spit.kernels.region_features`.
    """
    count_positions, count_gradients = position_counter(shape, *position), gradient_counter(*texture)

    def describe(image: Array, labels: Array, windows: Array, gradients: Array | None, out: Array) -> None:
        colors = image if table is None else convert(image, table)
        sample_colors(colors, out, labels, windows, masked, *scratch(resolution))
        first = len(image) * resolution**2
        sizes = count_positions(labels, out, first)
        if gradients is not None:
            count_gradients(gradients, labels, sizes, out, first + position[0] ** 2)

    return describe


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
def sample_colors(image: Array, out: Array, labels: Array, boxes: Array, masked: bool, places: Array,
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
def sample_adjoint(image: Array, out: Array, labels: Array, boxes: Array, masked: bool, places: Array,
                    weights: Array, corners: Array) -> None:
    """Add to the image what :func:`sample_colors` reads of it, times what stands in ``out``."""
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


def scratch(resolution: int) -> tuple[Array, Array, Array]:
    """The places, weights and corners of a patch's samples."""
    return np.empty((4, resolution), np.uint64), np.empty((4, resolution)), np.empty((4, resolution))


def scharr(image: Array, white: int, out: Array) -> None:
    """The Scharr gradients of the grey image, see :func:`spit.kernels.scharr`; ``white`` is the value of white.

    Shape:
        image ``(C, H, W)``, out ``(2, H, W)``, which is filled.
    """
    _scharr(image, white, np.empty((image.shape[1] + 2, image.shape[2] + 2), out.dtype), out)


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
