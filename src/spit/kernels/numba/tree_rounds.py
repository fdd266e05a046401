"""A round of connected Ward clustering by compiled loops, on a list of edges.

A table of sums has zeros after the bands and sizes in the last column, see :mod:`~spit.kernels.numba.contraction`.
Heights are kept as bits, which have the order of the floats. A key is a cost, with the pair's chance in its lower half.
"""

from typing import Any

import numpy as np
from numba.extending import register_jitable

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.contraction import contract_edges, sum_regions
from spit.kernels.numba.forest import follow
from spit.kernels.rules import DWARF, DWARF_RATIO, EAGER

D = np.float64
F = np.float32
U = np.uint64
NONE = np.iinfo(np.int64).max
"""A key above all others."""
INFINITY = int(np.array(np.inf, np.float32).view(np.int32))
BANDS = 5  # at least: a colour image with positions; further ones have the weight 0, which changes no cost
RATIOS = np.array(EAGER)
ROOTS = np.sqrt(np.sqrt(np.sqrt(np.arange(4096.0))))  # |v|^⅛ of small regions
BLOCK = 2048  # edges whose costs fit in the nearest cache


@compiled
def merge_all(edges: Array, sums: Array, names: Array, tops: Array, scale: Array, tree: tuple[Array, Array],
              rounds: int, points: Array | None) -> int:
    """Rounds of merges until no edge is left, see :func:`spit.kernels.numba.tree.cluster`; how many are done then."""
    rows = np.empty((len(sums), columns(len(scale))))
    while len(edges) > 0:
        ratio = RATIOS[rounds] if rounds < len(RATIOS) else 0.0
        means = rows[: len(sums)]
        average(sums, means)
        chosen, costs = link(edges, means, scale, names if points is None else points[names])
        labels, count, names, tops = merge(chosen, costs, ratio, sums[:, -1], names, tops, tree[0], tree[1])
        edges, sums = contract_edges(edges, labels), sum_regions(sums, labels, count)
        rounds += 1
    return rounds


@inlined
def average(sums: Array, means: Array) -> None:
    """Means of the bands, |v|^⅛ and |v|; ``means`` has :func:`columns` columns."""
    lanes, last = sums.shape[1], means.shape[1] - 1
    used = min(lanes - 1, last - 1)
    for v in range(len(sums)):
        row, out = sums[U(v)], means[U(v)]
        size = D(row[lanes - 1])
        for c in range(used):
            out[c] = D(row[c]) / size
        out[last] = size
        if row[lanes - 1] < len(ROOTS):
            out[last - 1] = ROOTS[U(row[lanes - 1])]
        else:
            out[last - 1] = np.sqrt(np.sqrt(np.sqrt(size)))


@register_jitable  # for Python too
def columns(bands: int) -> int:
    """Columns of a table of means; a row that is filled is a cache line."""
    return 8 * ((bands + 9) // 8)


@inlined
def link(edges: Array, means: Array, scale: Array, names: Array) -> tuple[Array, Array]:
    """Each region's cheapest neighbour, or itself without one, and the cost."""
    count = len(means)
    chances, best = np.empty(count, np.uint32), np.full(count, NONE, np.int64)
    for i in range(count):
        chances[i] = chance(names[i])
    keys = np.empty(len(edges), np.int64)
    distance, cost = np.empty(BLOCK, D), np.empty(BLOCK, F)
    for start in range(0, len(edges), BLOCK):
        block, order = edges[start : start + BLOCK], keys[start : start + BLOCK]
        _edge_keys(block, means, scale, chances, distance, cost, order)
        for e in range(len(block)):
            u, v = U(block[e, 0]), U(block[e, 1])
            best[u] = min(best[u], order[e])
            best[v] = min(best[v], order[e])
    chosen, costs = np.empty(count + 1, np.int32), np.empty(count, F)  # one more, for edges that nobody chooses
    bits = costs.view(np.int32)
    for i in range(count):
        chosen[i] = i
        bits[i] = best[i] >> 32
    for e in range(len(edges)):
        first, second = edges[e, 0], edges[e, 1]
        chosen[U(first) if best[U(first)] == keys[e] else U(count)] = second
        chosen[U(second) if best[U(second)] == keys[e] else U(count)] = first
    return chosen[:count], costs


@inlined
def _edge_keys(edges: Array, means: Array, scale: Array, chances: Array, distance: Array, cost: Array,
               keys: Array) -> None:
    """Costs in the upper half, and the edges' order among equals in the lower."""
    size = U(means.shape[1] - 1)
    for e in range(len(edges)):
        u, v = means[U(edges[e, 0])], means[U(edges[e, 1])]
        total = _term(u, v, U(0), scale)
        total = total + _term(u, v, U(1), scale)
        total = total + _term(u, v, U(2), scale)
        total = total + _term(u, v, U(3), scale)
        distance[e] = total + _term(u, v, U(4), scale)
    for c in range(BANDS, len(scale)):
        for e in range(len(edges)):
            distance[e] = distance[e] + _term(means[U(edges[e, 0])], means[U(edges[e, 1])], U(c), scale)
    for e in range(len(edges)):
        a, b = means[U(edges[e, 0]), size], means[U(edges[e, 1]), size]
        evenness = min(means[U(edges[e, 0]), size - U(1)], means[U(edges[e, 1]), size - U(1)])
        cost[e] = F((a * b) / (a + b) * distance[e] * evenness)
    bits = cost.view(np.int32)
    for e in range(len(edges)):
        keys[e] = np.int64(bits[e]) << 32 | np.int64(chances[U(edges[e, 0])] ^ chances[U(edges[e, 1])])


@inlined
def _term(u: Array, v: Array, c: int, scale: Array) -> Any:
    gap = u[c] - v[c]
    return scale[c] * (gap * gap)


@inlined
def merge(chosen: Array, costs: Array, ratio: float, sizes: Array, names: Array, tops: Array, parents: Array,
           heights: Array) -> tuple[Array, int, Array, Array]:
    """Merge regions: labels and count of those above, their names and the heights of their last merges.

    Sizes are read if the ratio is 0. A loop for each step: so LLVM makes vector code without branches, which would be
    mispredicted.
    """
    count, bits = len(chosen), costs.view(np.int32)
    near, second = np.empty(count, np.int32), np.empty(count, np.int32)
    above, last = np.empty(count, np.int32), np.empty(count, np.int32)
    least = F(ratio if ratio > 0 else DWARF_RATIO)
    for v in range(count):
        near[v] = costs[v] <= least * costs[U(chosen[v])]
    for v in range(count if ratio == 0 else 0):
        near[v] &= DWARF * sizes[v] <= sizes[U(chosen[v])]
    for v in range(count):
        near[v] &= chosen[U(chosen[v])] != v
    for v in range(count):
        second[v] = np.int32(chosen[U(chosen[v])] == v) & np.int32(names[U(chosen[v])] < names[v])
    for v in range(count):
        above[v] = chosen[v] if near[v] | second[v] else np.int32(v)
    for v in range(count):
        last[v] = max(bits[v], np.int32(max(tops[v], tops[U(above[v])]) + 1))
    merged = near
    for v in range(count):
        merged[v] = last[v] if above[v] != v else np.int32(INFINITY)
        last[v] = last[v] if above[v] != v else tops[v]
    for v in range(count):
        heights[U(names[v])] = merged[v]
        parents[U(names[v])] = names[U(above[v])]
    names_above, numbers = second, np.empty(count, np.int32)
    roots: Any = U(0)
    for v in range(count):
        name = names[v]
        names_above[roots] = name
        numbers[v] = roots
        roots += U(above[v] == v)
    labels = follow(above, numbers)
    tops_above = np.zeros(roots, np.int32)
    for v in range(count):
        tops_above[U(labels[v])] = max(tops_above[U(labels[v])], last[v])
    return labels, roots, names_above[:roots], tops_above


@inlined
def chance(name: int) -> Any:
    """See :func:`spit.kernels.reference.tree.chance`."""
    x = np.uint32(name)
    x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D))
    x = np.uint32((x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B))
    return np.uint32(x ^ (x >> np.uint32(16)))
