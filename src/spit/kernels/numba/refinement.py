"""Boundary refinement by compiled loops: ``reference.refine``, bit for bit."""

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.regions import check_labels
from spit.kernels.numba.threads import for_each_image

F = np.float32


def refine(labels: Array, offsets: Array, pixels: Array, sweeps: int, least: int = 1, masked: bool = False) -> Array:
    """See :func:`spit.kernels.reference.refine`."""
    check_labels(labels, offsets, lowest=-1 if masked else 0)
    return np.stack(for_each_image(lambda image, count, planes: _refine_image(image, count, planes, sweeps, least),
                                   labels, np.diff(offsets).tolist(), pixels))


def _refine_image(labels: Array, count: int, planes: Array, sweeps: int, least: int) -> Array:
    channels, height, width = planes.shape
    padded = np.full((height + 2, width + 2), count, np.uint32)  # count is nobody's region, outside the image or mask
    padded[1:-1, 1:-1] = labels
    np.minimum(padded, np.uint32(count), out=padded)  # −1 is nobody's too
    sums = np.empty((count + 1, channels + 2), np.int64)  # and the size, and how many pixels may leave in a visit
    table = np.full((channels + 2, count + 1), np.inf, np.float32)  # a mean a channel, and two factors, see _tabulate
    table[:channels, count] = 0
    rows, errors = np.empty((3, width + 1), np.uint32), np.empty((2, width), np.float32)
    _refine(padded, planes, sweeps, least, sums, table, np.empty(width, np.bool_), rows, errors)
    refined = padded[1:-1, 1:-1].astype(np.int32)
    refined[refined == count] = -1
    return refined


@compiled
def _refine(padded: Array, planes: Array, sweeps: int, least: int, sums: Array, table: Array, free: Array, rows: Array,
            errors: Array) -> None:
    channels, height, width = planes.shape
    nobody = np.uint32(len(sums) - 1)
    movable, there, to = rows[0], rows[1], rows[2]
    error, best = errors[0], errors[1]
    for v in range(len(sums)):
        for c in range(channels + 1):
            sums[v, c] = 0
    for y in range(height):
        for x in range(width):
            v = padded[y + 1, x + 1]
            sums[v, channels] += 1
            for c in range(channels):
                sums[v, c] += planes[c, y, x]
    for visit in range(4 * sweeps):
        first = visit % 4
        _tabulate(sums, least, table)
        for y in range(first // 2, height, 2):
            above, here, below = padded[y], padded[y + 1], padded[y + 2]
            _removable(above, here, below, nobody, free)
            k = 0
            for x in range(first % 2, width, 2):
                movable[k] = x
                k += free[x]
            for side in range(-1, 4):  # the pixel's own region, then those at its four sides
                row = above if side == 0 else below if side == 3 else here
                step = 0 if side == 1 else 2 if side == 2 else 1
                for i in range(k):
                    there[i] = row[movable[i] + step]
                _errors(planes[:, y], movable, there, table, table[channels if side < 0 else channels + 1], error, k)
                for i in range(k):
                    better = (side < 0) | ((error[i] < best[i]) & (there[i] != here[movable[i] + 1]))
                    best[i] = error[i] if better else best[i]
                    to[i] = there[i] if better else to[i]
            for i in range(k):
                x, own = movable[i], here[movable[i] + 1]
                if to[i] != own and sums[own, channels + 1] > 0:
                    here[x + 1] = to[i]
                    sums[own, channels + 1] -= 1
                    sums[own, channels] -= 1
                    sums[to[i], channels] += 1
                    for c in range(channels):
                        sums[own, c] -= planes[c, y, x]
                        sums[to[i], c] += planes[c, y, x]


@inlined
def _tabulate(sums: Array, least: int, table: Array) -> None:
    """μ_v, |v| / (|v| − 1) and |v| / (|v| + 1) of every region; nobody's region stays at ∞."""
    channels = sums.shape[1] - 2
    for v in range(len(sums) - 1):
        sums[v, channels + 1] = sums[v, channels] - least
        size = F(sums[v, channels])
        for c in range(channels):
            table[c, v] = F(sums[v, c]) / size
        table[channels, v] = size / max(size - F(1), F(1))
        table[channels + 1, v] = size / (size + F(1))


@inlined
def _removable(above: Array, here: Array, below: Array, nobody: int, free: Array) -> None:
    """The pixels of a row with another region at a side, whose own region stays connected without them."""
    for x in range(len(free)):
        own = here[x + 1]
        north, east = above[x + 1] == own, here[x + 2] == own
        south, west = below[x + 1] == own, here[x] == own
        sides = np.int32(north) + np.int32(east) + np.int32(south) + np.int32(west)
        bridges = (np.int32(north & east & (above[x + 2] == own)) + np.int32(east & south & (below[x + 2] == own))
                   + np.int32(south & west & (below[x] == own)) + np.int32(west & north & (above[x] == own)))
        free[x] = (sides - bridges == 1) & (sides < 4) & (own != nobody)


@inlined
def _errors(row: Array, movable: Array, regions: Array, means: Array, factor: Array, out: Array, count: int) -> None:
    """factor_v · ‖x − μ_v‖² for each movable pixel of a row and the region v it is compared with."""
    for c in range(len(row)):
        for i in range(count):
            gap = F(row[c, movable[i]]) - means[c, regions[i]]
            out[i] = gap * gap if c == 0 else out[i] + gap * gap
    for i in range(count):
        out[i] = factor[regions[i]] * out[i]
