"""Boundary refinement as compiled loops."""

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined

F = np.float32


@compiled
def refine(labels: Array, count: int, planes: Array, sweeps: int, out: Array) -> None:
    channels, height, width = planes.shape
    padded = np.full((height + 2, width + 2), count, np.uint32)  # count is nobody's region, outside the image
    sums = np.zeros((count, channels + 1), np.int64)  # the last is the size
    for y in range(height):
        for x in range(width):
            v = labels[y, x]
            padded[y + 1, x + 1] = v
            sums[v, channels] += 1
            for c in range(channels):
                sums[v, c] += planes[c, y, x]
    means = np.zeros((channels, count + 1), np.float32)
    leave = np.ones(count + 1, np.float32)
    join = np.full(count + 1, np.inf, np.float32)  # nobody's region stays at ∞
    free = np.empty(width, np.bool_)
    found = np.empty(width + 1, np.uint32)
    there, to = np.empty(width, np.uint32), np.empty(width, np.uint32)
    error, best = np.empty(width, np.float32), np.empty(width, np.float32)
    for _ in range(sweeps):
        for first in range(4):
            _tabulate(sums, means, leave, join)
            for y in range(first // 2, height, 2):
                above, here, below = padded[y], padded[y + 1], padded[y + 2]
                _removable(above, here, below, free)
                k = 0
                for x in range(first % 2, width, 2):
                    found[k] = x
                    k += free[x]
                for i in range(k):
                    to[i] = here[found[i] + 1]
                _errors(planes[:, y], found, to, means, leave, best, k)
                for side in range(4):
                    row = above if side == 0 else below if side == 3 else here
                    step = 0 if side == 1 else 2 if side == 2 else 1
                    for i in range(k):
                        there[i] = row[found[i] + step]
                    _errors(planes[:, y], found, there, means, join, error, k)
                    for i in range(k):
                        better = (error[i] < best[i]) & (there[i] != here[found[i] + 1])
                        best[i] = error[i] if better else best[i]
                        to[i] = there[i] if better else to[i]
                for i in range(k):
                    x, own = found[i], here[found[i] + 1]
                    if to[i] != own:
                        here[x + 1] = to[i]
                        sums[own, channels] -= 1
                        sums[to[i], channels] += 1
                        for c in range(channels):
                            sums[own, c] -= planes[c, y, x]
                            sums[to[i], c] += planes[c, y, x]
    for y in range(height):
        for x in range(width):
            out[y, x] = padded[y + 1, x + 1]


@inlined
def _tabulate(sums: Array, means: Array, leave: Array, join: Array) -> None:
    """μ_v, |v| / (|v| − 1) and |v| / (|v| + 1) of every region."""
    count, channels = len(sums), sums.shape[1] - 1
    for v in range(count):
        size = F(sums[v, channels])
        for c in range(channels):
            means[c, v] = F(sums[v, c]) / size
        leave[v] = size / max(size - F(1), F(1))
        join[v] = size / (size + F(1))


@inlined
def _removable(above: Array, here: Array, below: Array, free: Array) -> None:
    """The pixels of a row with another region at a side, whose own region stays connected without them."""
    for x in range(len(free)):
        own = here[x + 1]
        north, east = above[x + 1] == own, here[x + 2] == own
        south, west = below[x + 1] == own, here[x] == own
        sides = np.int32(north) + np.int32(east) + np.int32(south) + np.int32(west)
        bridges = (np.int32(north & east & (above[x + 2] == own)) + np.int32(east & south & (below[x + 2] == own))
                   + np.int32(south & west & (below[x] == own)) + np.int32(west & north & (above[x] == own)))
        free[x] = (sides - bridges == 1) & (sides < 4)


@inlined
def _errors(row: Array, found: Array, regions: Array, means: Array, factor: Array, out: Array, count: int) -> None:
    """factor_v · ‖x − μ_v‖² for each pixel found in a row and the region v it is compared with."""
    for c in range(len(row)):
        for i in range(count):
            gap = F(row[c, found[i]]) - means[c, regions[i]]
            out[i] = gap * gap if c == 0 else out[i] + gap * gap
    for i in range(count):
        out[i] = factor[regions[i]] * out[i]
