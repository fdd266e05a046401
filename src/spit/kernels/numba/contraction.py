"""One level of contraction (§2.2) as compiled loops: points, weights, choices and sums, on the regions of one image.

Floats are float32 and every operation is one of + − × ÷ √ in the reference's order; numba without
``fastmath`` neither reorders nor fuses. The loops are written without branches where the data
decides, since a mispredicted branch costs more than the arithmetic. What they look up by has no sign: of a signed index
numba asks whether it counts from the end.

Sums of features have their region's size in the last column and zeros before it, so that the columns are a multiple of
four: four of them are one vector.
"""


import math
from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.forest import ordered
from spit.kernels.rules import COSINE, SCALE, VARIANCE

F = np.float32
U = np.uint64
RECENT = 4096
MOST = np.iinfo(np.int32).max
NOTHING = np.iinfo(np.int64).min


@compiled
def link_pixels(planes: Array, kind: int) -> Array:
    """Level 0: each pixel's best of four neighbours, the smallest number first among equals."""
    channels, height, width = planes.shape
    chosen = np.empty((height, width), np.int32)
    here, below = np.empty((channels, width), F), np.empty((channels, width), F)
    # −∞ stands for the edges that the image's border cuts; sides are west of pixel x and, one further, east of it.
    north, south, sides = _row(width, -np.inf), _row(width, -np.inf), _row(width + 1, -np.inf)
    lengths = _row(width, SCALE)
    for y in range(-1, height):
        here, below = below, here
        if y + 1 < height:
            _pixel_points(planes, y + 1, kind, lengths, below)
        if y < 0:
            continue
        _similarity(here, here, np.int64(1), kind, sides[1:])
        if y + 1 < height:
            _similarity(here, below, np.int64(0), kind, south)
        else:
            for x in range(width):
                south[x] = F(-np.inf)
        row = chosen[y]
        for x in range(width):
            best, step = north[x], np.int32(-width if y > 0 else 0)
            if sides[x] > best:
                best, step = sides[x], np.int32(-1)
            if sides[x + 1] > best:
                best, step = sides[x + 1], np.int32(1)
            if south[x] > best:
                best, step = south[x], np.int32(width)
            row[x] = np.int32(y * width + x) + step
        north, south = south, north
    return chosen.reshape(height * width)


@inlined
def _row(width: int, value: float) -> Array:
    row = np.empty(width, F)
    for x in range(width):
        row[x] = F(value)
    return row


@inlined
def _pixel_points(planes: Array, y: int, kind: int, lengths: Array, out: Array) -> None:
    """:func:`region_points` of a row of pixels."""
    channels, _, width = planes.shape
    if kind == COSINE:
        for c in range(channels):
            for x in range(width):
                square = F(planes[c, y, x]) * F(planes[c, y, x])
                lengths[x] = square if c == 0 else lengths[x] + square
        for x in range(width):
            length = np.sqrt(lengths[x])
            lengths[x] = length if length != F(0) else F(1)
    for c in range(channels):
        for x in range(width):
            out[c, x] = F(planes[c, y, x]) / lengths[x]


@inlined
def _similarity(a: Array, b: Array, step: int, kind: int, out: Array) -> None:
    """The similarity of the pixels a[:, i] and b[:, i + step]."""
    channels, width = a.shape
    for c in range(channels):
        left, right = a[c], b[c, step:]
        for i in range(len(right)):
            p, q = left[i], right[i]
            term = p * q if kind == COSINE else (p - q) * (p - q)
            out[i] = term if c == 0 else out[i] + term
    if kind != COSINE:
        for i in range(width - step):
            out[i] = -(F(0.5) * out[i]) if kind == VARIANCE else -np.sqrt(out[i])


@compiled
def adjacency(labels: Array) -> Array:
    """Pairs of neighbouring regions, ``(E, 2)``. Most pairs come once along a shared border.

    A pair is left out if another two of the four pixels around it are the same pair and come before it.
    """
    edges = np.empty((2 * labels.size + 1, 2), np.int32)
    new = np.empty(labels.shape[1], np.bool_)
    height, width = labels.shape
    k = U(0)
    for y in range(height):
        row, above = labels[y], labels[max(y - 1, 0)]
        for x in range(width - 1):
            u, v = row[x], row[x + 1]
            same = (above[x] == u) & (above[x + 1] == v)
            new[x] = (u != v) & ((y == 0) | ((above[x] != v) & (above[x + 1] != u) & (not same)))
        for x in range(width - 1):
            edges[k, 0] = row[x]
            edges[k, 1] = row[x + 1]
            k += U(new[x])
        if y + 1 < height:
            below = labels[y + 1]
            new[0] = row[0] != below[0]
            for x in range(1, width):
                u, v = row[x], below[x]
                same = (row[x - 1] == u) & (below[x - 1] == v)
                new[x] = (u != v) & (row[x - 1] != v) & (not same)
            for x in range(width):
                edges[k, 0] = row[x]
                edges[k, 1] = below[x]
                k += U(new[x])
    return edges[:k]


@compiled
def contract_edges(edges: Array, labels: Array) -> Array:
    """The edges between the regions above. Repeats that are still in a small table of recent pairs are left out."""
    out = np.empty((len(edges) + 1, 2), np.int32)
    recent = np.full(RECENT, -1, np.int64)
    k = U(0)
    for e in range(len(edges)):
        a, b = labels[U(edges[e, 0])], labels[U(edges[e, 1])]
        u, v = min(a, b), max(a, b)
        pair = np.int64(u) << 32 | np.int64(v)
        slot = U(u * 31 + v) % U(RECENT)
        out[k, 0] = u
        out[k, 1] = v
        k += U((u != v) & (recent[slot] != pair))
        recent[slot] = pair
    return out[:k]


def sum_type(values: Array, points: int, *sides: int) -> type[np.int32] | type[np.int64]:
    """The integers that hold the sum of so many values, and of places on the sides of a grid."""
    largest = max(abs(int(values.max())), abs(int(values.min())), 1, *sides)
    return np.int32 if largest * points < 2**31 else np.int64


def sum_pixels(planes: Array, labels: Array, count: int, boxed: bool) -> tuple[Array, Array | None]:
    """Sums and sizes of the regions of pixels, ``(V, L)``, of 64 bits if the image is so large that 32 overflow.

    And their boxes, if asked for: first row and column and minus the ends of both, ``(V, 4)``: minima, all of them.
    """
    channels, _, width = planes.shape
    largest = max(SCALE, *labels.shape)  # of features, and of rows and columns
    sums = np.zeros((count, 4 * (channels // 4 + 1)), np.int32 if labels.size * largest < 2**31 else np.int64)
    rest = np.zeros((2, width), planes.dtype)
    rest[1] = 1
    boxes = np.full((count, 4), MOST, np.int32) if boxed else None
    _sum_pixels(planes, labels, rest, sums, boxes)
    return sums, boxes


@compiled
def _sum_pixels(planes: Array, labels: Array, rest: Array, sums: Array, boxes: Array | None) -> None:
    """The columns beyond the channels are 0, and the last is the size."""
    channels, height, width = planes.shape
    for y in range(height):
        for c in range(0, sums.shape[1], 4):
            first = planes[c, y] if c < channels else rest[0]
            second = planes[c + 1, y] if c + 1 < channels else rest[0]
            third = planes[c + 2, y] if c + 2 < channels else rest[0]
            fourth = planes[c + 3, y] if c + 3 < channels else rest[1]
            for x in range(width):
                v = U(labels[y, x])
                add_four(sums, v, U(c), first[x], second[x], third[x], fourth[x])
                if boxes is not None and c == 0:  # the first is decided when numba compiles
                    _lower(boxes, v, y, x, -1 - y, -1 - x)


@compiled
def sum_regions(sums: Array, labels: Array, count: int) -> Array:
    """Sums and sizes of the regions above, π_v^(t+1) = ∪ π_u^(t)."""
    above = np.zeros((count, sums.shape[1]), sums.dtype)
    for u in range(len(sums)):
        for c in range(0, sums.shape[1], 4):
            row = sums[U(u), c : c + 4]
            add_four(above, U(labels[u]), U(c), row[0], row[1], row[2], row[3])
    return above


@inlined
def add_four(rows: Array, v: int, c: int, first: int, second: int, third: int, fourth: int) -> None:
    """Add to four columns of row v. All are read before any is written, so that it is one vector addition."""
    a, b = rows[v, c] + first, rows[v, c + U(1)] + second
    d, e = rows[v, c + U(2)] + third, rows[v, c + U(3)] + fourth
    rows[v, c], rows[v, c + U(1)], rows[v, c + U(2)], rows[v, c + U(3)] = a, b, d, e


@compiled
def box_regions(boxes: Array, labels: Array, count: int) -> Array:
    """The boxes of the regions above."""
    above = np.full((count, 4), MOST, np.int32)
    for u in range(len(boxes)):
        box = boxes[U(u)]
        _lower(above, U(labels[u]), box[0], box[1], box[2], box[3])
    return above


@inlined
def _lower(boxes: Array, v: int, first: int, second: int, third: int, fourth: int) -> None:
    """The minimum of row v and four numbers, as one vector operation."""
    box = boxes[v]
    a, b = min(box[0], np.int32(first)), min(box[1], np.int32(second))
    c, d = min(box[2], np.int32(third)), min(box[3], np.int32(fourth))
    box[0], box[1], box[2], box[3] = a, b, c, d


@compiled
def region_points(sums: Array, kind: int) -> Array:
    """What is compared, ``(V, L)`` float32: sums at unit length for the cosine, else means μ_ξ(v); zeros at the end."""
    count, lanes = sums.shape
    points = np.empty((count, lanes), F)
    for v in range(count):
        length = F(np.int64(sums[v, lanes - 1]) * SCALE)
        if kind == COSINE:
            square = F(0)
            for c in range(lanes - 1):
                value = F(sums[v, c])
                square = square + value * value
            length = np.sqrt(square)
            length = length if length != F(0) else F(1)
        for c in range(lanes - 1):
            points[v, c] = F(sums[v, c]) / length
        points[v, lanes - 1] = F(0)
    return points


def loop_scale(sizes: Array, pixels: int, clip: float | None) -> tuple[float, float, float]:
    """The size at which the weight w(u, u) = (size − mean) / std of staying alone is 0, std, and the bound on it.

    The last is negative if regions may not stay alone.
    """
    if clip is None:
        return 0.0, 0.0, -1.0
    mean = pixels / len(sizes)
    variance = _sum_squares(sizes) / len(sizes) - mean * mean
    return mean, math.sqrt(max(variance, 0.0)), float(clip)


@compiled
def _sum_squares(sizes: Array) -> Any:
    total = np.int64(0)
    for v in range(len(sizes)):
        total += np.int64(sizes[v]) * np.int64(sizes[v])
    return total


@compiled
def link_regions(edges: Array, points: Array, sizes: Array, boxes: Array | None, loops: tuple[float, float, float],
                 compactness: float, kind: int) -> tuple[Array, Array]:
    """Each region's best neighbour, or itself with loops, and the weight of that edge."""
    count, lanes = points.shape
    dense, similar = F(compactness), F(1 - compactness)
    weights = np.empty(len(edges), F)
    # A loop for each part, where no edge waits for the one before, so that LLVM turns it into vector code.
    for e in range(len(edges)):
        u, v = U(edges[e, 0]), U(edges[e, 1])
        weight = _term(points[u, U(0)], points[v, U(0)], kind)
        weight = weight + _term(points[u, U(1)], points[v, U(1)], kind)
        weights[e] = weight + _term(points[u, U(2)], points[v, U(2)], kind)
    for c in range(3, lanes - 1):
        for e in range(len(edges)):
            weights[e] = weights[e] + _term(points[U(edges[e, 0]), U(c)], points[U(edges[e, 1]), U(c)], kind)
    if kind != COSINE:
        for e in range(len(edges)):
            a, b = F(sizes[U(edges[e, 0])]), F(sizes[U(edges[e, 1])])
            weights[e] = -((a * b) / (a + b) * weights[e]) if kind == VARIANCE else -np.sqrt(weights[e])
    if boxes is not None:
        for e in range(len(edges)):
            u, v = U(edges[e, 0]), U(edges[e, 1])
            total = np.int64(sizes[u]) + np.int64(sizes[v])
            weights[e] = dense * _density(boxes[u], boxes[v], total) + similar * weights[e]
    keys = np.full(count, NOTHING, np.int64)
    for e in range(len(edges)):
        u, v = U(edges[e, 0]), U(edges[e, 1])
        order = ordered(weights[e])
        keys[u] = max(keys[u], order - np.int64(v))
        keys[v] = max(keys[v], order - np.int64(u))
    mean, std, clip = loops
    best = np.empty(count, F)
    chosen = np.empty(count, np.int32)
    bits = best.view(np.int32)
    for i in range(count if clip >= 0 else 0):
        weight = F(0)
        if std > 0:
            weight = F(min(max((np.int64(sizes[i]) - mean) / std, -clip), clip))
        if boxes is not None:
            weight = dense * _density(boxes[i], boxes[i], np.int64(sizes[i])) + similar * weight
        keys[i] = max(keys[i], ordered(weight) - i)
    for i in range(count):
        high = (keys[i] + 0x7FFFFFFF) >> 32
        chosen[i] = i if keys[i] == NOTHING else (high << 32) - keys[i]
        bits[i] = high if high >= 0 else high ^ 0x7FFFFFFF
    return chosen, best


@inlined
def _term(p: float, q: float, kind: int) -> Any:
    return p * q if kind == COSINE else (p - q) * (p - q)


@inlined
def _density(a: Array, b: Array, size: int) -> Any:
    """δ_∞ of the union of two regions, from their boxes and its size."""
    perimeter = -2 * (min(a[0], b[0]) + min(a[1], b[1]) + min(a[2], b[2]) + min(a[3], b[3]))
    return F(4 * size) / F(perimeter * perimeter)
