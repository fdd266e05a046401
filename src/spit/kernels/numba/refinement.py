"""Boundary refinement by compiled loops: ``reference.refine``, bit for bit."""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.contraction import sum_type
from spit.kernels.numba.regions import check_labels
from spit.kernels.numba.threads import for_each_image, spans, threads_left
from spit.kernels.numba.tree_blocks import sum_grid

F = np.float32
U = np.uint64
PIXELS_PER_THREAD = 2**19
ROWS = 16  # of a class at once: loops that are long, over arrays in the nearest caches


def refine(labels: Array, offsets: Array, pixels: Array, sweeps: int, least: int = 1, masked: bool = False) -> Array:
    """See :func:`spit.kernels.reference.refine`."""
    check_labels(labels, offsets, lowest=-1 if masked else 0)

    def move(image: Array, count: int, planes: Array) -> Array:
        return refine_image(image, sum_colors(image, count, planes), planes, sweeps, least, masked)

    return np.stack(for_each_image(move, labels, np.diff(offsets).tolist(), pixels))


def sum_colors(labels: Array, count: int, planes: Array) -> Array:
    """Sums of the channels and sizes of regions, with a row more for pixels of none; ``(V + 1, L)``."""
    sums = np.zeros((count + 1, 4 * (len(planes) // 4 + 1)), sum_type(planes, planes[0].size))
    sum_grid(planes[:, None], labels[None], 0, sums)
    return sums


def refine_image(labels: Array, sums: Array, planes: Array, sweeps: int, least: int, masked: bool) -> Array:
    """:func:`refine` one image, whose :func:`sum_colors` follow the labels."""
    (channels, height, width), count = planes.shape, len(sums) - 1
    short = np.uint16 if count < 2**16 - 1 else np.uint32
    padded = np.full((height + 2, width + 2), count, short)  # count is nobody's region, outside the image or mask
    padded[1:-1, 1:-1] = labels
    if masked:
        np.minimum(padded, short(count), out=padded)  # −1 is nobody's too
    spare = np.empty(count + 1, np.int64)  # how many pixels may leave in a visit
    table = np.full((channels + 2, count + 1), np.inf, np.float32)  # a mean a channel, and two factors, see _tabulate
    table[:channels, count] = 0
    parts = spans((height + 1) // 2, min(threads_left(), -(-labels.size // PIXELS_PER_THREAD)))
    moves = [np.empty((2, (last - first) * (width // 2 + 1) + 1), np.uint32) for first, last in parts]
    if len(parts) == 1:
        _visit(padded, planes, table, parts[0], 4 * sweeps, moves[0], least, spare, sums)
    for visit in range(4 * sweeps if len(parts) > 1 else 0):
        _tabulate(sums, least, spare, table)
        counts = for_each_image(lambda part, out, start=visit % 4: _decide(padded, planes, table, part, start, out),
                                parts, moves)
        for out, moved in zip(moves, counts, strict=True):
            _move(padded, planes, out[:, :moved], spare, sums)
    refined = padded[1:-1, 1:-1].astype(np.int32)
    if masked:
        refined[refined == count] = -1
    return refined


@compiled
def _visit(padded: Array, planes: Array, table: Array, part: tuple[int, int], visits: int, moves: Array, least: int,
           spare: Array, sums: Array) -> None:
    """Visits of the classes in turn, on one thread."""
    for visit in range(visits):
        _tabulate(sums, least, spare, table)
        _move(padded, planes, moves[:, : _decide(padded, planes, table, part, visit % 4, moves)], spare, sums)


@compiled
def _decide(padded: Array, planes: Array, table: Array, part: tuple[int, int], start: int, moves: Array) -> Any:
    """Pixels of one class, in some pairs of rows, that would move, and the regions they would move to; the count.

    Pixels are numbered in the padded image. Those of a class touch no other, so none depends on another's move.
    """
    channels, height, width = planes.shape
    regions, nobody = padded.reshape(-1), np.uint32(table.shape[1] - 1)
    free, most = np.empty(width, np.bool_), ROWS * (width // 2 + 1)
    movable, own = np.empty(most + 1, np.uint32), np.empty(most, np.uint32)
    near, there = np.empty(4 * most + 1, np.uint32), np.empty(4 * most + 1, np.uint32)
    colors, distance, best = np.empty((channels, most), F), np.empty(4 * most, F), np.empty(most, F)
    left: Any = U(0)
    for group in range(2 * part[0] + start // 2, min(2 * part[1], height), 2 * ROWS):
        k: Any = U(0)
        for y in range(group, min(group + 2 * ROWS, 2 * part[1], height), 2):
            _removable(padded[U(y)], padded[U(y + 1)], padded[U(y + 2)], nobody, free)
            row, first = (y + 1) * (width + 2) + 1, k
            for x in range(start % 2, width, 2):
                movable[k] = x
                k += U(free[x])
            for c in range(channels):
                line, color = planes[c, U(y)], colors[U(c)]
                for i in range(first, k):
                    color[i] = line[U(movable[i])]
            for i in range(first, k):
                movable[i] += np.uint32(row)
        for i in range(k):
            own[i] = regions[U(movable[i])]
        m: Any = U(0)  # pixels with another region at a side
        for step in (-width - 2, -1, 1, width + 2):
            for i in range(k):
                near[m] = i
                there[m] = regions[U(movable[i] + step)]
                m += U(there[m] != own[i])
        for c in range(channels):
            color, mean = colors[c], table[c]
            for i in range(k):
                gap = color[i] - mean[U(own[i])]
                best[i] = gap * gap if c == 0 else best[i] + gap * gap
            for j in range(m):
                gap = color[U(near[j])] - mean[U(there[j])]
                distance[j] = gap * gap if c == 0 else distance[j] + gap * gap
        for i in range(k):
            best[i] = table[channels, U(own[i])] * best[i]
        for j in range(m):
            distance[j] = table[channels + 1, U(there[j])] * distance[j]
        to = moves[1, left:]
        for i in range(k):
            to[i] = own[i]
        for j in range(m):
            p = U(near[j])
            better = distance[j] < best[p]
            best[p] = distance[j] if better else best[p]
            to[p] = there[j] if better else to[p]
        for i in range(k):
            moves[0, left] = movable[i]
            moves[1, left] = to[i]
            left += U(moves[1, left] != own[i])
    return left


@compiled
def _move(padded: Array, planes: Array, moves: Array, spare: Array, sums: Array) -> None:
    """Move the pixels, the first ones of each region as far as it has pixels to give."""
    channels, _, width = planes.shape
    size = sums.shape[1] - 1
    for i in range(moves.shape[1]):
        y, x = divmod(np.int64(moves[0, i]), width + 2)
        own, to = padded[y, x], moves[1, i]
        if spare[own] > 0:
            padded[y, x] = to
            spare[own] -= 1
            sums[own, size] -= 1
            sums[to, size] += 1
            for c in range(channels):
                sums[own, c] -= planes[c, y - 1, x - 1]
                sums[to, c] += planes[c, y - 1, x - 1]


@compiled
def _tabulate(sums: Array, least: int, spare: Array, table: Array) -> None:
    """μ_v, |v| / (|v| − 1) and |v| / (|v| + 1) of every region; nobody's region stays at ∞."""
    channels, last = len(table) - 2, sums.shape[1] - 1
    for v in range(len(sums) - 1):
        spare[v] = sums[v, last] - least
        size = F(sums[v, last])
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
        # Sides without the next one in turn: one, if the pixels at the sides are connected.
        first, second = north & (not (east & (above[x + 2] == own))), east & (not (south & (below[x + 2] == own)))
        third, fourth = south & (not (west & (below[x] == own))), west & (not (north & (above[x] == own)))
        one = (first ^ second ^ third ^ fourth) & (not ((first & second) | (third & fourth)))
        free[x] = one & (not (north & east & south & west)) & (own != nobody)
