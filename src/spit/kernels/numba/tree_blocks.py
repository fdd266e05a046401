"""The first rounds of the tree of an image or a volume by compiled loops, block by block.

No edge between blocks counts in these rounds, so blocks do not depend on each other: threads share them, and an image
that does not fit in memory is read part by part. What a block needs fits in the nearest caches. An image is a volume of
one layer, and a part is a run of whole blocks.
"""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.contraction import add_four, contract_edges, sum_regions
from spit.kernels.numba.forest import follow
from spit.kernels.numba.tree_rounds import INFINITY, NONE, RATIOS, average, chance, columns, link, merge

D = np.float64
F = np.float32
U = np.uint64


@compiled
def grow_blocks(planes: Array, inside: Array | None, scale: Array, steps: Array, place: Array,
                bounds: tuple[int, int, int, int], tree: tuple[Array, Array, Array],
                sums: Array) -> tuple[Array, Array, Array]:
    """The first rounds in a run of blocks: sums, names and last heights of their regions.

    Args:
        planes: a part of the grid.
        scale: weights of the bands and the axes, padded, see :func:`link`.
        steps: weights of the axes, two of an image and three of a volume.
        place: sides of a block, the part's first corner in the whole grid, and the grid's sides.
        bounds: first layer of the part's blocks to grow, end of the layers, first row and end of the rows.
        tree: parents, heights as bits and regions of the part's points, which are filled in; −1 outside the mask.
        sums: of the type that holds a block's, and without rows.

    Shape:
        planes ``(C, D, H, W)``, inside ``(D, H, W)`` bool or None, place ``(3, 3)``, tree ``(D, H, W)`` int32.
    """
    sides, corner, whole = place[0], place[1], place[2]
    names, tops, left = np.empty(64, np.int32), np.empty(64, np.int32), 0
    table = np.empty((64, sums.shape[1]), np.int64)
    for z in range(bounds[0], bounds[1], sides[0]):
        for y in range(bounds[2], bounds[3], sides[1]):
            for x in range(0, planes.shape[3], sides[2]):
                z1, y1 = min(z + sides[0], bounds[1]), min(y + sides[1], bounds[3])
                x1 = min(x + sides[2], planes.shape[3])
                shape = (z1 - z, y1 - y, x1 - x)
                points = _points(planes, inside, (z, y, x), shape, corner, whole, len(steps), sums.shape[1])
                parents, heights, labels, block_sums, cells, block_tops = _grow_block(
                    points, len(planes), shape, scale, steps, sums)
                while left + len(cells) > len(names):
                    names, tops, table = _longer(names), _longer(tops), _longer_table(table)
                numbers = np.empty(len(cells), np.int32)
                for v in range(len(cells)):
                    numbers[v] = left
                    names[left] = points[len(points) - 1, U(cells[v])]
                    tops[left] = block_tops[v]
                    for c in range(sums.shape[1]):
                        table[left, c] = block_sums[v, c]
                    left += block_sums[v, sums.shape[1] - 1] > 0  # else outside the mask
                for row in range(shape[0] * shape[1]):
                    k, j, p = U(z + row // shape[1]), U(y + row % shape[1]), row * shape[2]
                    _copy_names(points[len(points) - 1], parents[p : p + shape[2]], tree[0][k, j, x:x1])
                    _copy(heights[p : p + shape[2]], tree[1][k, j, x:x1])
                    _copy_numbers(numbers, labels[p : p + shape[2]], tree[2][k, j, x:x1])
    return table[:left], names[:left], tops[:left]


@inlined
def _copy(values: Array, out: Array) -> None:  # faster than out[:] = values
    for i in range(len(out)):
        out[i] = values[i]


@inlined
def _copy_names(names: Array, parents: Array, out: Array) -> None:
    for i in range(len(out)):
        out[i] = names[U(parents[i])]


@inlined
def _copy_numbers(numbers: Array, labels: Array, out: Array) -> None:
    for i in range(len(out)):
        out[i] = numbers[U(max(labels[i], 0))] if labels[i] >= 0 else -1


@inlined
def _longer(values: Array) -> Array:
    out = np.empty(2 * len(values), values.dtype)
    out[: len(values)] = values
    return out


@inlined
def _longer_table(rows: Array) -> Array:
    out = np.empty((2 * len(rows), rows.shape[1]), rows.dtype)
    out[: len(rows)] = rows
    return out


@inlined
def _points(planes: Array, inside: Array | None, first: tuple[int, int, int], shape: tuple[int, int, int],
            corner: Array, whole: Array, axes: int, lanes: int) -> Array:
    """What each point of a block adds to the columns of a table of sums, and its name, ``(L + 1, P)``."""
    bands = len(planes)
    points = np.empty((lanes + 1, shape[0] * shape[1] * shape[2]), np.int32)
    for line in range(shape[0] * shape[1]):
        k, j, p = first[0] + line // shape[1], first[1] + line % shape[1], line * shape[2]
        end = p + shape[2]
        z, y, x = corner[0] + k, corner[1] + j, corner[2] + first[2]
        for c in range(bands):
            _copy(planes[U(c), U(k), U(j), first[2] : first[2] + shape[2]], points[U(c), p:end])
        if axes == 3:
            _count(z, 0, points[bands, p:end])
        _count(y, 0, points[bands + axes - 2, p:end])
        _count(x, 1, points[bands + axes - 1, p:end])
        for c in range(bands + axes, lanes - 1):
            _count(0, 0, points[c, p:end])
        _count(1, 0, points[lanes - 1, p:end])
        if inside is not None:  # decided when numba compiles
            _copy(inside[U(k), U(j), first[2] : first[2] + shape[2]], points[lanes - 1, p:end])
        _count((z * whole[1] + y) * whole[2] + x, 1, points[lanes, p:end])
    return points


@inlined
def _count(start: int, step: int, out: Array) -> None:
    for i in range(len(out)):
        out[i] = start + step * i


@inlined
def _grow_block(points: Array, bands: int, shape: tuple[int, int, int], scale: Array, steps: Array,
                kind: Array) -> tuple[Array, Array, Array, Array, Array, Array]:
    """The first rounds of one block, whose points are named by their number in it.

    Returns parents, heights and regions of its points, and sums, names and last heights of its regions.
    """
    count, lanes = points.shape[1], kind.shape[1]
    names, here = points[lanes], points[lanes - 1]
    parents, heights = np.empty(count, np.int32), np.empty(count, np.int32)
    chosen, costs = _link_points(points[:bands], here, names, shape, scale, steps)
    labels, left, cells, tops = _merge_points(chosen, costs, parents, heights)
    sums = np.zeros((left, lanes), kind.dtype)
    _sum_points(points, labels, sums)
    for p in range(count):
        labels[p] = labels[p] if here[p] else -1
    edges = grid_edges(labels.reshape(shape))
    means = np.empty((left, columns(len(scale))))
    for r in range(1, len(RATIOS)):
        means = means[: len(sums)]
        average(sums, means)
        chosen, costs = link(edges, means, scale, names[cells])
        above, left, cells, tops = merge(chosen, costs, RATIOS[r], cells, cells, tops, parents, heights)
        edges, sums = contract_edges(edges, above), sum_regions(sums, above, left)
        for p in range(count):
            labels[p] = above[U(max(labels[p], 0))] if here[p] else -1
    return parents, heights, labels, sums, cells, tops


@inlined
def _link_points(values: Array, inside: Array, names: Array, shape: tuple[int, int, int], scale: Array,
                 steps: Array) -> tuple[Array, Array]:
    """Each point's cheapest neighbour, or itself without one, and the cost."""
    points = len(inside)
    chances, best, step = np.empty(points, np.uint32), np.full(points, NONE, np.int64), np.zeros(points, np.int32)
    distance, keys, free = np.empty(points, D), np.empty(points, np.int64), np.empty(points, np.bool_)
    for p in range(points):
        chances[p] = chance(names[p])
    stride = 1
    for axis in range(len(steps)):  # from the last one
        side = shape[2 - axis]
        ends = stride * side
        count = points - stride if side > 1 else 0  # pairs; those that reach into the next row or layer are not free
        for p in range(count):
            free[p] = inside[p] & inside[p + stride] > 0
        for first in range(ends - stride, count, ends):
            for p in range(first, first + stride):
                free[p] = False
        for c in range(len(values)):
            _add_gaps(values[c, :count], values[c, stride : stride + count], scale[c], c == 0, distance)
        step_cost = steps[len(steps) - 1 - axis]
        _point_keys(distance, step_cost, chances[:count], chances[stride : stride + count], free, keys)
        _lower(best[:count], step[:count], keys, np.int32(stride))
        _lower(best[stride : stride + count], step[stride : stride + count], keys, np.int32(-stride))
        stride = ends
    costs = np.empty(points, F)
    bits = costs.view(np.int32)
    for p in range(points):
        step[p] += p
        bits[p] = best[p] >> 32
    return step, costs


@inlined
def _add_gaps(first: Array, second: Array, weight: float, new: bool, out: Array) -> None:
    """Add one band's terms of the squared distance."""
    for i in range(len(second)):
        gap = D(first[i]) - D(second[i])
        term = weight * (gap * gap)
        out[i] = term if new else out[i] + term


@inlined
def _point_keys(distance: Array, step: float, first: Array, second: Array, free: Array, out: Array) -> None:
    """Keys of pairs of points; costs are ½ ‖x − y‖², with the term of the place."""
    cost = np.empty(len(first), F)
    for i in range(len(first)):
        cost[i] = F(D(0.5) * (distance[i] + step))
    bits = cost.view(np.int32)
    for i in range(len(first)):
        key = np.int64(bits[i]) << 32 | np.int64(first[i] ^ second[i])
        out[i] = key if free[i] else NONE


@inlined
def _lower(best: Array, step: Array, keys: Array, stride: int) -> None:
    for i in range(len(best)):
        lower = keys[i] < best[i]
        best[i] = keys[i] if lower else best[i]
        step[i] = stride if lower else step[i]


@inlined
def _merge_points(chosen: Array, costs: Array, parents: Array, heights: Array) -> tuple[Array, int, Array, Array]:
    """:func:`merge` of points, all of which are of one size and new."""
    points, bits, ratio = len(chosen), costs.view(np.int32), F(RATIOS[0])
    cells, numbers = np.empty(points, np.int32), np.empty(points, np.int32)
    roots: Any = U(0)
    joins, last = np.empty(points, np.int32), np.empty(points, np.int32)
    for p in range(points):  # a loop for each step, as in merge
        to = U(chosen[p])
        near, mutual = np.int32(costs[p] <= ratio * costs[to]), np.int32(chosen[to] == p)
        joins[p] = (mutual & np.int32(chosen[p] < p)) | ((np.int32(1) - mutual) & near)
    for p in range(points):
        parents[p] = chosen[p] if joins[p] else np.int32(p)
        last[p] = max(bits[p], np.int32(1)) if joins[p] else np.int32(0)
        heights[p] = last[p] if joins[p] else np.int32(INFINITY)
    for p in range(points):
        cells[roots] = p
        numbers[p] = roots
        roots += U(1 - joins[p])
    labels = follow(parents, numbers)
    tops = np.zeros(roots, np.int32)
    for p in range(points):
        tops[U(labels[p])] = max(tops[U(labels[p])], last[p])
    return labels, roots, cells[:roots], tops


@inlined
def _sum_points(points: Array, labels: Array, sums: Array) -> None:
    """Add up what the points of every region add to each column."""
    for c in range(0, sums.shape[1], 4):
        first, second, third, fourth = points[c], points[c + 1], points[c + 2], points[c + 3]
        for p in range(len(labels)):
            add_four(sums, U(labels[p]), U(c), first[p], second[p], third[p], fourth[p])


@compiled
def sum_grid(planes: Array, labels: Array, axes: int, sums: Array) -> None:
    """Add up the bands, places and points of every region of a grid, ``(D, H, W)``; the last row is for negative ones.

    ``axes`` are how many of the places count, from the last one.
    """
    depth, height, width = labels.shape
    columns, regions = np.zeros((sums.shape[1], width), np.int32), np.empty(width, np.uint32)
    columns[-1] = 1
    if axes > 0:
        columns[len(planes) + axes - 1] = np.arange(width)
    for z in range(depth):
        for y in range(height):
            for x in range(width):
                regions[x] = labels[z, y, x] if labels[z, y, x] >= 0 else len(sums) - 1
            for axis in range(1, axes):
                columns[len(planes) + axes - 1 - axis] = y if axis == 1 else z
            for c in range(0, sums.shape[1], 4):
                for k in range(c, min(c + 4, len(planes))):
                    columns[k] = planes[k, z, y]
                first, second, third, fourth = columns[c], columns[c + 1], columns[c + 2], columns[c + 3]
                for x in range(width):
                    add_four(sums, U(regions[x]), U(c), first[x], second[x], third[x], fourth[x])


@compiled
def grid_edges(labels: Array) -> Array:
    """Pairs of neighbouring regions of a grid, ``(E, 2)``, without negative ones. Most come once along a shared border.

    A pair is left out if another two of the four points around it are the same pair and come before it.

    Shape:
        labels ``(D, H, W)`` int32.
    """
    depth, height, width = labels.shape
    edges = np.empty((3 * labels.size + 1, 2), np.int32)
    new = np.empty(width, np.bool_)
    k = U(0)
    for z in range(depth):
        for y in range(height):
            row, above = labels[z, y], labels[z, max(y - 1, 0)]
            for x in range(width - 1):
                u, v = row[x], row[x + 1]
                same = (above[x] == u) & (above[x + 1] == v)
                new[x] = (u != v) & ((y == 0) | ((above[x] != v) & (above[x + 1] != u) & (not same)))
            k = _write_edges(row[: width - 1], row[1:], new, edges, k)
            for axis in range(2):
                if (axis == 0 and y + 1 < height) or (axis == 1 and z + 1 < depth):
                    below = labels[z, y + 1] if axis == 0 else labels[z + 1, y]
                    new[0] = row[0] != below[0]
                    for x in range(1, width):
                        u, v = row[x], below[x]
                        same = (row[x - 1] == u) & (below[x - 1] == v)
                        new[x] = (u != v) & (row[x - 1] != v) & (not same)
                    k = _write_edges(row, below, new, edges, k)
    return edges[:k]


@inlined
def _write_edges(first: Array, second: Array, new: Array, edges: Array, k: Any) -> Any:
    for x in range(len(second)):
        edges[k, 0] = first[x]
        edges[k, 1] = second[x]
        k += U(new[x] & (first[x] >= 0) & (second[x] >= 0))
    return k
