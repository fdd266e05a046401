"""Contrast and diffusion (App. B) as compiled loops; integers throughout."""

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.rules import FRACTION, HALF, SCALE


def convert(image: Array, table: Array) -> Array:
    """:func:`look_up` of one image."""
    out = np.empty(image.shape, table.dtype)
    look_up(image, table, out)
    return out


@compiled
def look_up(image: Array, table: Array, out: Array) -> None:
    for c in range(image.shape[0]):
        curve = table[c]
        for y in range(image.shape[1]):
            row, line = image[c, y], out[c, y]
            for x in range(len(row)):
                line[x] = curve[row[x]]


@compiled
def saturate(image: Array, push: int, out: Array) -> None:
    factor = np.int32(push)
    for y in range(image.shape[1]):
        for x in range(image.shape[2]):
            red, green, blue = np.int32(image[0, y, x]), np.int32(image[1, y, x]), np.int32(image[2, y, x])
            luma = (np.int32(1225) * red + np.int32(2404) * green + np.int32(467) * blue + np.int32(HALF)) >> FRACTION
            for c in range(3):
                value = luma + ((factor * (np.int32(image[c, y, x]) - luma) + np.int32(HALF)) >> FRACTION)
                out[c, y, x] = min(max(value, -SCALE), SCALE)


@compiled
def diffuse(image: Array, flux: Array, steps: int, out: Array) -> None:
    spare = np.empty(image.shape[1:], np.int16)
    for c in range(image.shape[0]):
        source, target = spare, out[c]
        if steps % 2 == 0:
            source, target = target, source
        for y in range(image.shape[1]):
            for x in range(image.shape[2]):
                source[y, x] = image[c, y, x]
        for _ in range(steps):
            _diffuse_plane(source, flux, target)
            source, target = target, source


@inlined
def _diffuse_plane(x: Array, flux: Array, out: Array) -> None:
    height, width = x.shape
    zero = np.int32(2 * SCALE)  # where Δ = 0 stands in the table
    index = np.empty(width, np.uint32)
    east = np.zeros(width + 1, np.int32)
    south = np.zeros(width, np.int32)
    north = np.zeros(width, np.int32)
    for y in range(height):
        row = x[y]
        # Differences and look-ups in loops of their own: so LLVM turns both into vector code.
        for i in range(width - 1):
            index[i] = np.uint32(np.int32(row[i + 1] - row[i]) + zero)
        for i in range(width - 1):
            east[i + 1] = flux[index[i]]
        if y + 1 < height:
            below = x[y + 1]
            for i in range(width):
                index[i] = np.uint32(np.int32(below[i] - row[i]) + zero)
            for i in range(width):
                south[i] = flux[index[i]]
        else:
            south[:] = 0
        line = out[y]
        for i in range(width):  # with 32 bits, as numba adds with 64
            value = np.int32(row[i] + (east[i + 1] - east[i]) + (south[i] - north[i]))
            line[i] = min(max(value, np.int32(-SCALE)), np.int32(SCALE))
        north, south = south, north
