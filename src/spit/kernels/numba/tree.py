"""The tree of connected Ward clustering by compiled loops: ``reference.tree``, bit for bit.

The first rounds of a grid are in :mod:`~spit.kernels.numba.tree_blocks`; from there on there is a list of edges.
"""

from typing import NamedTuple

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled
from spit.kernels.numba.contraction import sum_regions, sum_type
from spit.kernels.numba.forest import DIGIT, shorten, smallest
from spit.kernels.numba.preprocess import saturate
from spit.kernels.numba.refinement import refine_image, sum_colors
from spit.kernels.numba.threads import for_each_image, spans, threads_left
from spit.kernels.numba.tree_blocks import grid_edges, grow_blocks, sum_grid
from spit.kernels.numba.tree_rounds import BANDS, INFINITY, merge_all
from spit.kernels.rules import BLOCK_SIDES, COLOR_STEP, EAGER, MOST_PULL, SCALE, TREE_PUSH, finer_count, tree_weights

U = np.uint64


class Blocks(NamedTuple):
    """What the first rounds make of a part of a grid, a run of whole blocks.

    Attributes:
        parents: the name that each point's name joined, and heights as bits.
        labels: number of the region of each point; −1 outside the mask.
        sums: bands, places and sizes of regions, with zeros between.
        names: of the regions.
        tops: their last heights, as bits.

    Shape:
        parents, heights and labels of the part, int32; sums ``(V, L)`` int64; names and tops ``(V,)`` int32.
    """

    parents: Array
    heights: Array
    labels: Array
    sums: Array
    names: Array
    tops: Array


def tree_labels(pixels: Array, count: int, compactness: float, sweeps: int) -> Array:
    """See :func:`spit.kernels.reference.tree_labels`."""
    weights = np.array(tree_weights(pixels.shape[1], compactness))

    def cut(planes: Array, image: Array) -> Array:
        tree, size = grid_tree(planes, weights, None), planes[0].size
        if sweeps == 0:
            return cut_tree(*tree, min(count, size)).reshape(planes.shape[1:])
        fine = cut_tree(*tree, min(finer_count(count, sweeps), size)).reshape(planes.shape[1:])
        return recut(fine, planes, weights, image, count, sweeps)

    return np.stack(for_each_image(cut, tree_colors(pixels), pixels))


def recut(fine: Array, planes: Array, weights: Array, pixels: Array, count: int, sweeps: int, least: int = 1,
          masked: bool = False) -> Array:
    """See :func:`spit.kernels.reference.recut`."""
    if sweeps > 0 and weights[len(planes) :].min() >= 1:
        pulls = COLOR_STEP * np.minimum(np.sqrt(weights), MOST_PULL)
        points = np.concatenate([planes, np.indices(fine.shape)])
        pixels = np.rint(points * pulls[:, None, None]).astype(np.int32)
    left = int(fine.max()) + 1
    labels, sums = fine, sum_colors(fine, left, pixels)
    if sweeps > 1:
        labels = refine_image(fine, sums, pixels, 1, least, masked)
        parents, heights = region_tree(planes, labels, weights)
        cut = cut_tree(parents, heights, max(min(count, left), int(np.isinf(heights).sum())))
        left = int(cut.max()) + 1
        labels = np.where(labels >= 0, cut[labels], np.int32(-1)) if masked else cut[labels]
        sums = sum_regions(sums, np.append(cut, np.int32(left)), left + 1)
        sweeps -= 1
    return refine_image(labels, sums, pixels, sweeps, least, masked)


def region_tree(planes: Array, labels: Array, weights: Array) -> tuple[Array, Array]:
    """See :func:`spit.kernels.reference.region_tree`."""
    grid = labels.reshape(-1, *labels.shape[-2:])
    count = int(labels.max()) + 1
    sums = np.zeros((count + 1, _lanes(_padded(weights))), sum_type(planes, grid.size, *grid.shape))
    sum_grid(planes.reshape(len(planes), *grid.shape), grid, planes.ndim - 1, sums)
    parents, heights = np.arange(count, dtype=np.int32), np.full(count, INFINITY, np.int32)
    tree = (parents, heights)
    cluster(grid_edges(grid), sums[:count], parents.copy(), np.zeros_like(parents), weights, tree, len(EAGER))
    return parents, heights.view(np.float32)


def tree_colors(pixels: Array) -> Array:
    """See :func:`spit.kernels.portable.tree_colors`."""
    colors = pixels.astype(np.int16) * np.int16(COLOR_STEP) - np.int16(SCALE)
    colors = np.repeat(colors, 3, 1) if pixels.shape[1] == 1 else colors
    return saturate(colors, TREE_PUSH) if colors.shape[1] == 3 else colors


def grid_tree(planes: Array, weights: Array, mask: Array | None) -> tuple[Array, Array]:
    """See :func:`spit.kernels.reference.grid_tree`."""
    blocks = grid_blocks(planes, weights, mask)
    edges = grid_edges(blocks.labels.reshape(-1, *planes.shape[-2:]))
    parents, heights = blocks.parents.reshape(-1), blocks.heights.reshape(-1)
    cluster(edges, blocks.sums, blocks.names, blocks.tops, weights, (parents, heights), len(EAGER))
    return parents, heights.view(np.float32)


def grid_blocks(planes: Array, weights: Array, mask: Array | None, corner: tuple[int, ...] = (0, 0, 0),
                shape: tuple[int, ...] | None = None) -> Blocks:
    """The first rounds of a part of a grid.

    Args:
        corner: layer, row and column of the part in the whole grid, multiples of BLOCK_SIDES.
        shape: layers, rows and columns of the whole grid, by default the part's.
    """
    axes = planes.ndim - 1
    part = planes.reshape(len(planes), -1, *planes.shape[-2:])
    inside = None if mask is None else mask.reshape(part.shape[1:])
    scale, sides = _padded(weights), BLOCK_SIDES[axes]
    place = np.array([sides, corner, part.shape[1:] if shape is None else shape])
    sums = np.empty((0, _lanes(scale)), sum_type(part, int(np.prod(sides)), *place[2].tolist()))
    tree = tuple(np.empty(part.shape[1:], np.int32) for _ in range(3))
    axis = 0 if part.shape[1] > sides[0] else 1
    sizes = part.shape[1:3]
    chunks = [(side * first, min(side * last, size)) for side, size in ((sides[axis], sizes[axis]),)
              for first, last in spans(-(-size // side), threads_left())]
    steps = np.ascontiguousarray(weights[len(planes) :], np.float64)

    def grow(first: int, last: int) -> tuple[Array, Array, Array]:
        bounds = (first, last, 0, sizes[1]) if axis == 0 else (0, sizes[0], first, last)
        regions: tuple[Array, Array, Array] = grow_blocks(part, inside, scale, steps, place, bounds, tree, sums)
        return regions

    parts = for_each_image(grow, *zip(*chunks, strict=True))
    before = len(parts[0][0])
    for (first, last), (table, *_) in zip(chunks[1:], parts[1:], strict=True):
        labels = tree[2][first:last] if axis == 0 else tree[2][:, first:last]
        np.add(labels, before, out=labels, where=labels >= 0)
        before += len(table)
    return Blocks(*tree, *map(np.concatenate, zip(*parts, strict=True)))


def graph_tree(points: Array, weights: Array, edges: Array) -> tuple[Array, Array]:
    """See :func:`spit.kernels.reference.graph_tree`."""
    count = len(points)
    sums = np.zeros((count, _lanes(_padded(weights))), np.int64)
    sums[:, : points.shape[1]], sums[:, -1] = points, 1
    parents, heights = np.arange(count, dtype=np.int32), np.full(count, INFINITY, np.int32)
    cluster(edges.astype(np.int32), sums, parents.copy(), np.zeros_like(parents), weights, (parents, heights), 0)
    return parents, heights.view(np.float32)


def cluster(edges: Array, sums: Array, names: Array, tops: Array, weights: Array, tree: tuple[Array, Array],
            rounds: int, points: Array | None = None) -> None:
    """Rounds of merges until no edge is left; ``rounds`` are done. Fills in the parents and heights of ``tree``.

    Args:
        points: of a tree that has some of the points alone, their numbers among all, which rise.

    Shape:
        edges ``(E, 2)``, sums ``(V, L)``, names and tops ``(V,)``, tree and points ``(P,)`` each.
    """
    merge_all(edges, sums, names, tops, _padded(weights), tree, rounds, points)


def cut_tree(parents: Array, heights: Array, count: int) -> Array:
    """See :func:`spit.kernels.reference.cut_tree`."""
    labels: Array = _cut(parents, heights.view(np.int32), len(parents) - count, np.empty(DIGIT, np.int64))
    return labels


def _padded(weights: Array) -> Array:
    """The weights of BANDS bands or more; a band more of weight 0 changes no cost."""
    return np.append(weights, np.zeros(max(BANDS - len(weights), 0)))


def _lanes(scale: Array) -> int:
    """Columns of a table of sums."""
    return 4 * (len(scale) // 4 + 1)


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
    shorten(roots)
    count = 0
    for v in range(len(roots)):
        root = U(roots[v])
        if numbers[root] < 0:
            numbers[root] = count
            count += 1
        roots[v] = numbers[root]
    return roots
