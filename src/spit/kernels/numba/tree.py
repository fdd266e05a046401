"""The tree of connected Ward clustering by compiled loops: ``reference.tree``, bit for bit.

The first round of an image is in :mod:`~spit.kernels.numba.tree_pixels`; from there on there is a list of edges. A
table of sums has zeros after the bands and sizes in the last column, see :mod:`~spit.kernels.numba.contraction`.
Heights are kept as bits, which have the order of the floats. A key is a cost, with the pair's chance in its lower half.
"""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.numba.contraction import adjacency, contract_edges, sum_regions
from spit.kernels.numba.forest import DIGIT, components, smallest
from spit.kernels.numba.preprocess import saturate
from spit.kernels.numba.threads import for_each_image
from spit.kernels.numba.tree_pixels import NONE, chance, link_pixels, sum_pixels
from spit.kernels.rules import COLOR_STEP, DWARF, DWARF_RATIO, EAGER, SCALE, TREE_PUSH, tree_weights

D = np.float64
F = np.float32
U = np.uint64
INFINITY = int(np.array(np.inf, np.float32).view(np.int32))
BANDS = 5  # at least: a colour image with positions; further ones have the weight 0, which changes no cost
BLOCK = 2048  # edges whose costs fit in the nearest cache


def tree_labels(pixels: Array, count: int, compactness: float) -> Array:
    """See :func:`spit.kernels.reference.tree_labels`."""
    weights = np.array(tree_weights(pixels.shape[1], compactness))
    labels = np.empty((len(pixels), *pixels.shape[2:]), np.int32)

    def cut(planes: Array, out: Array) -> None:
        out[...] = cut_tree(*grid_tree(planes, weights, None), min(count, out.size)).reshape(out.shape)

    for_each_image(cut, tree_colors(pixels), labels)
    return labels


def tree_colors(pixels: Array) -> Array:
    """See :func:`spit.kernels.portable.tree_colors`."""
    colors = pixels.astype(np.int16) * np.int16(COLOR_STEP) - np.int16(SCALE)
    colors = np.repeat(colors, 3, 1) if pixels.shape[1] == 1 else colors
    return saturate(colors, TREE_PUSH) if colors.shape[1] == 3 else colors


def grid_tree(planes: Array, weights: Array, mask: Array | None) -> tuple[Array, Array]:
    """See :func:`spit.kernels.reference.grid_tree`."""
    scale, tree = _padded(weights), _roots(planes[0].size)
    edges, sums, names, tops = _merge_pixels(planes, scale, mask, tree)
    _cluster(edges, sums, names, tops, scale, tree, 1)
    return tree[0], tree[1].view(np.float32)


def graph_tree(points: Array, weights: Array, edges: Array) -> tuple[Array, Array]:
    """See :func:`spit.kernels.reference.graph_tree`."""
    scale, tree = _padded(weights), _roots(len(points))
    sums = np.zeros((len(points), _lanes(scale)), np.int64)
    sums[:, : points.shape[1]], sums[:, -1] = points, 1
    _cluster(edges.astype(np.int32), sums, tree[0].copy(), np.zeros_like(tree[0]), scale, tree, 0)
    return tree[0], tree[1].view(np.float32)


def cut_tree(parents: Array, heights: Array, count: int) -> Array:
    """See :func:`spit.kernels.reference.cut_tree`."""
    labels: Array = _cut(parents, heights.view(np.int32), len(parents) - count, np.empty(DIGIT, np.int64))
    return labels


def _padded(weights: Array) -> Array:
    """The weights of BANDS bands or more; a band more of weight 0 changes no cost."""
    return np.pad(np.asarray(weights, np.float64), (0, max(BANDS - len(weights), 0)))


def _lanes(scale: Array) -> int:
    """Columns of a table of sums."""
    return 4 * (len(scale) // 4 + 1)


def _roots(count: int) -> tuple[Array, Array]:
    """A tree before any merge; the heights as bits."""
    return np.arange(count, dtype=np.int32), np.full(count, np.inf, np.float32).view(np.int32)


def _merge_pixels(planes: Array, scale: Array, mask: Array | None,
                  tree: tuple[Array, Array]) -> tuple[Array, Array, Array, Array]:
    """The first round of an image: edges, sums, names and last heights of its regions."""
    size, pixels = planes.shape[1:], planes[0].size
    inside = np.ones(size, np.bool_) if mask is None else mask
    names, tops = np.arange(pixels, dtype=np.int32), np.zeros(pixels, np.int32)
    labels, count, names, tops = _merge(*link_pixels(planes, scale, inside), EAGER[0], names, names, tops, *tree)
    edges = adjacency(labels.reshape(size))
    if mask is not None:
        edges = edges[mask.reshape(-1)[names[edges]].all(1)]
    largest = max(int(planes.max()), -int(planes.min()), *size)
    sums = np.zeros((count, _lanes(scale)), np.int32 if largest * pixels < 2**31 else np.int64)
    sum_pixels(planes, labels.reshape(size), sums)
    return edges, sums, names, tops


def _cluster(edges: Array, sums: Array, names: Array, tops: Array, scale: Array, tree: tuple[Array, Array],
             rounds: int) -> None:
    """Rounds of merges until no edge is left."""
    rows = np.empty((len(tree[0]), 8 * (len(scale) // 8 + 1)))  # one that is filled is a cache line
    while len(edges) > 0:
        ratio = EAGER[rounds] if rounds < len(EAGER) else 0.0
        means = rows[: len(sums)]
        _average(sums, means)
        labels, count, names, tops = _merge(*_link(edges, means, scale, names), ratio, sums[:, -1], names, tops, *tree)
        edges, sums = contract_edges(edges, labels), sum_regions(sums, labels, count)
        rounds += 1


@compiled
def _average(sums: Array, means: Array) -> None:
    """Means of the bands, and the sizes in the last column."""
    lanes, last = sums.shape[1], means.shape[1] - 1
    for v in range(len(sums)):
        row, out = sums[U(v)], means[U(v)]
        size = D(row[lanes - 1])
        for c in range(lanes - 1):
            out[c] = D(row[c]) / size
        out[last] = size


@compiled
def _link(edges: Array, means: Array, scale: Array, names: Array) -> tuple[Array, Array]:
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
        cost[e] = F((a * b) / (a + b) * distance[e])
    bits = cost.view(np.int32)
    for e in range(len(edges)):
        keys[e] = np.int64(bits[e]) << 32 | np.int64(chances[U(edges[e, 0])] ^ chances[U(edges[e, 1])])


@inlined
def _term(u: Array, v: Array, c: int, scale: Array) -> Any:
    gap = u[c] - v[c]
    return scale[c] * (gap * gap)


@compiled
def _merge(chosen: Array, costs: Array, ratio: float, sizes: Array, names: Array, tops: Array, parents: Array,
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
        second[v] = np.int32(chosen[U(chosen[v])] == v) & np.int32(chosen[v] < v)
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
    names_above: Array = second
    roots: Any = U(0)
    for v in range(count):
        name = names[v]
        names_above[roots] = name
        roots += U(above[v] == v)
    labels, left = components(above)
    tops_above = np.zeros(left, np.int32)
    for v in range(count):
        tops_above[U(labels[v])] = max(tops_above[U(labels[v])], last[v])
    return labels, left, names_above[:left], tops_above


@compiled
def _cut(parents: Array, heights: Array, joined: int, table: Array) -> Array:
    """Follow the pointers of the ``joined`` lowest merges, of equally high ones those of smaller names; the labels."""
    roots, numbers = np.empty(len(parents), np.int32), np.empty(len(parents), np.int32)
    last, equal = smallest(heights, joined, table)
    for v in range(len(roots)):
        roots[v] = parents[v] if heights[v] < last else np.int32(v)
        numbers[v] = -1
    for v in range(len(roots)):
        if equal > 0 and heights[v] == last:
            roots[v] = parents[v]
            equal -= 1
    moved = 1
    while moved > 0:  # a pointer only ever gets nearer to its root
        moved = 0
        for v in range(len(roots)):
            to = roots[v]
            roots[v] = roots[U(to)]
            moved += roots[v] != to
    count = 0
    for v in range(len(roots)):
        root = U(roots[v])
        if numbers[root] < 0:
            numbers[root] = count
            count += 1
        roots[v] = numbers[root]
    return roots
