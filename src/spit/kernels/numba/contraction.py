"""One level of contraction (§2.2) as compiled loops: points, weights, choices and sums, on the regions of one image.

Floats are float32 and every operation is one of + − × ÷ √ in the reference's order; numba without
``fastmath`` neither reorders nor fuses. The loops are written without branches where the data
decides, since a mispredicted branch costs more than the arithmetic. What they look up by has no sign: of a signed index
numba asks whether it counts from the end.
"""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.forest import ordered
from spit.kernels.rules import COSINE, EUCLIDEAN, SCALE, VARIANCE

F = np.float32
U = np.uint64
RECENT = 4096
NOTHING = np.iinfo(np.int64).min


@compiled
def link_pixels(planes: Array, kind: int) -> Array:
    """Level 0: each pixel's best of four neighbours, the smallest number first among equals."""
    channels, height, width = planes.shape
    chosen = np.empty((height, width), np.int32)
    here = np.empty((channels, width), np.float32)
    below = np.empty((channels, width), np.float32)
    # −∞ stands for the edges that the image's border cuts.
    north = np.full(width, -np.inf, np.float32)
    south = np.full(width, -np.inf, np.float32)
    sides = np.full(width + 1, -np.inf, np.float32)  # west of pixel x and, one further, east of it
    pixel_points(planes, np.int64(0), kind, below)
    for y in range(height):
        here, below = below, here
        similarity(here, here, np.int64(1), kind, sides[1:width])
        if y + 1 < height:
            pixel_points(planes, y + 1, kind, below)
            similarity(here, below, np.int64(0), kind, south)
        else:
            south[:] = F(-np.inf)
        row = chosen[y]
        for x in range(width):
            best = north[x]
            step = np.int32(-width)
            if sides[x] > best:
                best = sides[x]
                step = np.int32(-1)
            if sides[x + 1] > best:
                best = sides[x + 1]
                step = np.int32(1)
            if south[x] > best:
                best = south[x]
                step = np.int32(width)
            row[x] = np.int32(y * width + x) + step
        north, south = south, north
    if height * width == 1:
        chosen[0, 0] = 0
    return chosen.reshape(height * width)


@compiled
def link_pixels_within(planes: Array, regions: Array) -> tuple[Array, Array]:
    """Each pixel's best neighbour in its own region, or itself, by the variance; and the weight of that edge."""
    channels, height, width = planes.shape
    chosen = np.empty((height, width), np.int32)
    weights = np.empty((height, width), np.float32)
    here = np.empty((channels, width), np.float32)
    below = np.empty((channels, width), np.float32)
    nothing = F(-np.inf)
    north = np.full(width, nothing, np.float32)
    south = np.full(width, nothing, np.float32)
    sides = np.full(width + 1, nothing, np.float32)
    pixel_points(planes, np.int64(0), VARIANCE, below)
    for y in range(height):
        here, below = below, here
        similarity(here, here, np.int64(1), VARIANCE, sides[1:width])
        own = regions[y]
        for x in range(1, width):
            sides[x] = sides[x] if own[x - 1] == own[x] else nothing
        if y + 1 < height:
            pixel_points(planes, y + 1, VARIANCE, below)
            similarity(here, below, np.int64(0), VARIANCE, south)
            further = regions[y + 1]
            for x in range(width):
                south[x] = south[x] if own[x] == further[x] else nothing
        else:
            south[:] = nothing
        row, line = chosen[y], weights[y]
        for x in range(width):
            best, step = nothing, np.int32(0)
            if north[x] > best:
                best, step = north[x], np.int32(-width)
            if sides[x] > best:
                best, step = sides[x], np.int32(-1)
            if sides[x + 1] > best:
                best, step = sides[x + 1], np.int32(1)
            if south[x] > best:
                best, step = south[x], np.int32(width)
            row[x] = np.int32(y * width + x) + step
            line[x] = best
        north, south = south, north
    return chosen.reshape(height * width), weights.reshape(height * width)


@inlined
def pixel_points(planes: Array, y: int, kind: int, out: Array) -> None:
    """:func:`region_points` of a row of pixels."""
    channels, _, width = planes.shape
    lengths = np.full(width, SCALE, np.float32)
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
def similarity(a: Array, b: Array, step: int, kind: int, out: Array) -> None:
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
    height, width = labels.shape
    edges = np.empty((2 * height * width + 1, 2), np.int32)
    new = np.empty(width, np.bool_)
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
    return edges[:k].copy()


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
    return out[:k].copy()


@compiled
def sum_pixels(planes: Array, labels: Array, count: int) -> tuple[Array, Array, Array]:
    channels, height, width = planes.shape
    sums = np.zeros((count, channels), np.int64)
    sizes = np.zeros(count, np.int64)
    boxes = np.empty((count, 4), np.int32)
    boxes[:, :2] = height + width
    boxes[:, 2:] = -1
    for y in range(height):
        row = labels[y * width : (y + 1) * width]
        for x in range(width):
            v = U(row[x])
            sizes[v] += 1
            box = boxes[v]
            box[0] = min(box[0], y)
            box[1] = min(box[1], x)
            box[2] = y
            box[3] = max(box[3], x)
        for c in range(channels):
            plane = planes[c, y]
            for x in range(width):
                sums[U(row[x]), c] += plane[x]
    return sums, sizes, boxes


@compiled
def sum_regions(sums: Array, sizes: Array, boxes: Array, labels: Array, count: int) -> tuple[Array, Array, Array]:
    channels = sums.shape[1]
    new_sums = np.zeros((count, channels), np.int64)
    new_sizes = np.zeros(count, np.int64)
    new_boxes = np.empty((count, 4), np.int32)
    new_boxes[:, :2] = np.iinfo(np.int32).max
    new_boxes[:, 2:] = -1
    for u in range(len(sizes)):
        v = U(labels[u])
        new_sizes[v] += sizes[u]
        for c in range(channels):
            new_sums[v, U(c)] += sums[U(u), U(c)]
        box = new_boxes[v]
        box[0] = min(box[0], boxes[u, 0])
        box[1] = min(box[1], boxes[u, 1])
        box[2] = max(box[2], boxes[u, 2])
        box[3] = max(box[3], boxes[u, 3])
    return new_sums, new_sizes, new_boxes


@compiled
def region_points(sums: Array, sizes: Array, kind: int) -> Array:
    """What is compared: sums at unit length for the cosine, else means μ_ξ(v)."""
    count, channels = sums.shape
    points = np.empty((count, channels), np.float32)
    for v in range(count):
        length = F(sizes[v] * SCALE)
        if kind == COSINE:
            square = F(0)
            for c in range(channels):
                value = F(sums[v, c])
                square = square + value * value
            length = np.sqrt(square)
            length = length if length != F(0) else F(1)
        for c in range(channels):
            points[v, c] = F(sums[v, c]) / length
    return points


@compiled
def loop_weights(sizes: Array, loop_mean: float, clip: float) -> Array:
    """w(u, u): (size − mean) / std of the sizes, clipped."""
    count = len(sizes)
    total = squares = 0
    for v in range(count):
        total += sizes[v]
        squares += sizes[v] * sizes[v]
    mean = total / count
    variance = squares / count - mean * mean
    weights = np.zeros(count, np.float32)
    if variance > 0:
        deviation = np.sqrt(variance)
        for v in range(count):
            weights[v] = min(max((sizes[v] - loop_mean * mean) / deviation, -clip), clip)
    return weights


@inlined
def density(a: Array, b: Array, size: int) -> Any:
    """δ_∞ of the union of two regions, from their boxes and its size."""
    height = max(a[2], b[2]) - min(a[0], b[0]) + 1
    width = max(a[3], b[3]) - min(a[1], b[1]) + 1
    perimeter = 2 * (height + width)
    return F(4 * size) / F(perimeter * perimeter)


@compiled
def link_regions(edges: Array, points: Array, sizes: Array, boxes: Array, loops: Array, compactness: float,
                 kind: int) -> tuple[Array, Array]:
    """Each region's best neighbour, or itself with loops, and the weight of that edge."""
    count, channels = points.shape
    dense, similar = F(compactness), F(1 - compactness)
    keys = np.full(count, NOTHING, np.int64)
    for e in range(len(edges)):
        u, v = U(edges[e, 0]), U(edges[e, 1])
        weight = F(0)
        for c in range(channels):
            p, q = points[u, U(c)], points[v, U(c)]
            weight = weight + (p * q if kind == COSINE else (p - q) * (p - q))
        if kind == VARIANCE:
            a, b = F(sizes[u]), F(sizes[v])
            weight = -((a * b) / (a + b) * weight)
        elif kind == EUCLIDEAN:
            weight = -np.sqrt(weight)
        if compactness > 0:
            weight = dense * density(boxes[u], boxes[v], sizes[u] + sizes[v]) + similar * weight
        order = ordered(weight)
        keys[u] = max(keys[u], order - np.int64(v))
        keys[v] = max(keys[v], order - np.int64(u))
    for i in range(len(loops)):
        weight = loops[i]
        if compactness > 0:
            weight = dense * density(boxes[i], boxes[i], sizes[i]) + similar * weight
        keys[i] = max(keys[i], ordered(weight) - i)
    best = np.empty(count, np.float32)
    chosen = np.empty(count, np.int32)
    bits = best.view(np.int32)
    for i in range(count):
        high = (keys[i] + 0x7FFFFFFF) >> 32
        chosen[i] = i if keys[i] == NOTHING else (high << 32) - keys[i]
        bits[i] = high if high >= 0 else high ^ 0x7FFFFFFF
    return chosen, best
