"""Contrast and diffusion (App. B) by compiled loops; integers throughout."""

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.regions import gather
from spit.kernels.numba.threads import for_each_image
from spit.kernels.rules import FRACTION, HALF, SCALE
from spit.kernels.tables import DIFFUSION_STEPS, SATURATION, contrast_table, flux_table


def superpixel_features(pixels: Array, saturated: bool) -> Array:
    """See :func:`spit.kernels.reference.superpixel_features`."""
    table, flux, push = contrast_table(pixels.shape[1]), flux_table(), round(SATURATION * 2**FRACTION)
    features = np.empty(pixels.shape, np.int16)

    def make(image: Array, out: Array) -> None:
        colors = np.empty(image.shape, np.int16)
        convert(image, table, colors)
        if saturated:
            paler, colors = colors, np.empty_like(colors)
            _saturate(paler, push, colors)
        _diffuse(colors, flux, DIFFUSION_STEPS, out)

    for_each_image(make, pixels, features)
    return features


def look_up(images: Array, table: Array) -> Array:
    """See :func:`spit.kernels.reference.look_up`."""
    out = np.empty(images.shape, table.dtype)
    for_each_image(lambda image, line: convert(image, table, line), images, out)
    return out


def convert(image: Array, table: Array, out: Array) -> None:
    """:func:`look_up` of one image."""
    for channel, curve, plane in zip(image, table, out, strict=True):
        gather(curve, channel.reshape(-1), plane.reshape(-1))


def diffuse(features: Array, flux: Array, steps: int) -> Array:
    """See :func:`spit.kernels.reference.diffuse`."""
    out = np.empty(features.shape, np.int16)
    for_each_image(lambda image, result: _diffuse(image, flux, steps, result), features, out)
    return out


@compiled
def _diffuse(image: Array, flux: Array, steps: int, out: Array) -> None:
    channels, height, width = image.shape
    spare, index = np.empty((height, width), np.int16), np.empty(width, np.uint32)
    east = np.zeros(width + 1, np.int32)  # its ends are the borders, where nothing flows
    south, north = np.empty(width, np.int32), np.empty(width, np.int32)
    for c in range(channels):
        for y in range(height if steps == 0 else 0):
            for x in range(width):
                out[c, y, x] = image[c, y, x]
        source = image[c]
        for step in range(steps, 0, -1):  # back and forth between two planes; the last step writes the answer
            target = out[c] if step % 2 == 1 else spare
            for i in range(width):
                north[i] = 0
            for y in range(height):
                row, line = source[y], target[y]
                # Differences and look-ups in loops of their own: so LLVM turns both into vector code.
                _differences(row[: width - 1], row[1:], index)
                for i in range(width - 1):
                    east[i + 1] = flux[index[i]]
                if y + 1 < height:
                    _differences(row, source[y + 1], index)
                    for i in range(width):
                        south[i] = flux[index[i]]
                else:
                    for i in range(width):
                        south[i] = 0
                for i in range(width):  # with 32 bits, as numba adds with 64
                    value = np.int32(row[i] + (east[i + 1] - east[i]) + (south[i] - north[i]))
                    line[i] = min(max(value, np.int32(-SCALE)), np.int32(SCALE))
                north, south = south, north
            source = target


@inlined
def _differences(a: Array, b: Array, index: Array) -> None:
    """Where b − a stands in the table."""
    for i in range(len(a)):
        index[i] = np.uint32(np.int32(b[i] - a[i]) + np.int32(2 * SCALE))


def saturate(features: Array, push: int) -> Array:
    """See :func:`spit.kernels.reference.saturate`."""
    out = np.empty(features.shape, np.int16)
    for_each_image(lambda image, result: _saturate(image, push, result), features, out)
    return out


@compiled
def _saturate(image: Array, push: int, out: Array) -> None:
    factor = np.int32(push)
    for y in range(image.shape[1]):
        for x in range(image.shape[2]):
            red, green, blue = np.int32(image[0, y, x]), np.int32(image[1, y, x]), np.int32(image[2, y, x])
            luma = (np.int32(1225) * red + np.int32(2404) * green + np.int32(467) * blue + np.int32(HALF)) >> FRACTION
            for c in range(3):
                value = luma + ((factor * (np.int32(image[c, y, x]) - luma) + np.int32(HALF)) >> FRACTION)
                out[c, y, x] = min(max(value, -SCALE), SCALE)
