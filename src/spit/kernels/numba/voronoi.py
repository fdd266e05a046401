"""Voronoi cells by compiled loops: random sites, and the nearest of them, searched in rings of buckets."""

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled
from spit.kernels.numba.threads import for_each_image

GOLDEN = 0x9E3779B97F4A7C15


def draw_sites(pixels: Array, cells: int, seed: int) -> Array:
    """See :func:`spit.kernels.reference.draw_sites`."""
    weights = _mix(np.arange(1, pixels[0].size + 1, dtype=np.uint64))
    start = np.array([seed * GOLDEN % 2**64], np.uint64)  # arrays wrap round without a warning

    def draw(image: Array) -> Array:
        fingerprint = start + (weights * image.reshape(-1)).sum()
        sites = _distinct(fingerprint, cells, image[0].size)
        return np.stack(np.divmod(sites, image.shape[2]), 1).astype(np.int32)

    return np.stack(for_each_image(draw, pixels))


def _distinct(fingerprint: Array, cells: int, pixels: int) -> Array:
    """Distinct pixels in raster order, ``(cells,)``."""
    if 2 * cells > pixels:
        first: Array = np.argsort(_draws(fingerprint, pixels), kind="stable")[:cells]
        return np.sort(first)
    draws = 2 * cells
    while True:
        drawn = (_draws(fingerprint, draws) % np.uint64(pixels)).astype(np.int64)
        order = np.argsort(drawn, kind="stable")
        candidates = drawn[order]
        order[1:][candidates[1:] == candidates[:-1]] = draws  # drawn before
        sites: Array = candidates[order <= np.sort(order)[cells - 1]]
        if len(sites) == cells:
            return sites
        draws *= 2  # which leaves the first draws, and what was enough, as they are


def _draws(fingerprint: Array, count: int) -> Array:
    return _mix(fingerprint + np.arange(count, dtype=np.uint64))


def _mix(x: Array) -> Array:
    """SplitMix64, see the reference."""
    x = (x + np.uint64(1)) * np.uint64(GOLDEN)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed


def nearest_sites(sites: Array, height: int, width: int) -> Array:
    """See :func:`spit.kernels.reference.nearest_sites`."""
    labels = np.empty((len(sites), height, width), np.int32)

    def fill(places: Array, out: Array) -> None:
        _nearest(places, out)
        _settle(places, out)

    for_each_image(fill, sites, labels)
    return labels


@compiled
def _nearest(sites: Array, labels: Array) -> None:
    height, width = labels.shape
    count = len(sites)
    side = max(int(np.sqrt(height * width / count)), 1)
    rows, columns = (height + side - 1) // side, (width + side - 1) // side
    start = np.zeros(rows * columns + 1, np.int64)
    for n in range(count):
        start[sites[n, 0] // side * columns + sites[n, 1] // side + 1] += 1
    for i in range(rows * columns):
        start[i + 1] += start[i]
    filled = start[:-1].copy()
    members = np.empty(count, np.int32)
    for n in range(count):
        bucket = sites[n, 0] // side * columns + sites[n, 1] // side
        members[filled[bucket]] = n
        filled[bucket] += 1
    for y in range(height):
        row = y // side
        for x in range(width):
            column = x // side
            best = np.int64(height + width) ** 2
            label = count
            ring = 0
            while True:
                for i in range(max(row - ring, 0), min(row + ring, rows - 1) + 1):
                    inner = abs(i - row) < ring
                    for j in range(max(column - ring, 0), min(column + ring, columns - 1) + 1):
                        if inner and abs(j - column) < ring:
                            continue
                        for k in range(start[i * columns + j], start[i * columns + j + 1]):
                            n = members[k]
                            dy, dx = np.int64(y - sites[n, 0]), np.int64(x - sites[n, 1])
                            distance = dy * dy + dx * dx
                            if distance < best or (distance == best and n < label):
                                best = distance
                                label = n
                # How near a site outside the searched square can be.
                reach = min(min(y - (row - ring) * side + 1, (row + ring + 1) * side - y),
                            min(x - (column - ring) * side + 1, (column + ring + 1) * side - x))
                if best < reach * reach or ring > max(rows, columns):
                    break
                ring += 1
            labels[y, x] = label


@compiled
def _settle(sites: Array, labels: Array) -> None:
    """Give pixels that are cut off from their site to the nearest cell that touches them, layer by layer."""
    height, width = labels.shape
    stride = width + 2
    wide = np.full((height + 2, stride), -1, np.int32)  # a rim outside all cells, so that there are no borders to check
    for y in range(height):
        for x in range(width):
            wide[y + 1, x + 1] = labels[y, x]
    cell = wide.reshape(-1)
    settled = np.zeros(len(cell), np.bool_)
    stack = np.empty(len(cell), np.int32)
    for n in range(len(sites)):
        stack[0] = (sites[n, 0] + 1) * stride + sites[n, 1] + 1
        settled[stack[0]] = True
        depth = 1
        while depth > 0:
            depth -= 1
            p = stack[depth]
            for q in (p - stride, p - 1, p + 1, p + stride):
                if not settled[q] and cell[q] == n:
                    settled[q] = True
                    stack[depth] = q
                    depth += 1
    loose = np.flatnonzero(~settled & (cell >= 0))
    while len(loose) > 0:
        choice = np.full(len(loose), -1, np.int32)
        for i in range(len(loose)):
            p = loose[i]
            y, x = p // stride - 1, p % stride - 1
            best = np.int64(height + width) ** 2
            for q in (p - stride, p - 1, p + 1, p + stride):
                if settled[q]:
                    n = cell[q]
                    dy, dx = np.int64(y - sites[n, 0]), np.int64(x - sites[n, 1])
                    distance = dy * dy + dx * dx
                    if distance < best or (distance == best and n < choice[i]):
                        best = distance
                        choice[i] = n
        for i in range(len(loose)):
            if choice[i] >= 0:
                cell[loose[i]] = choice[i]
                settled[loose[i]] = True
        loose = loose[choice < 0]
    for y in range(height):
        for x in range(width):
            labels[y, x] = wide[y + 1, x + 1]
