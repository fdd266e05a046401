"""Superpixels as a cut through a tree: connected Ward clustering of the points of a graph.

Not in the paper. Each round, regions that are each other's cheapest neighbour join, all such pairs at once, until every
connected component of the graph is one region. The first rounds are more eager, and stay within fixed blocks of a grid,
so that threads share an image and a large one is read part by part. The cost of joining u and v is the growth of the
squared error (Ward, 1963), with the position among the bands, times a power of the smaller size, so that sizes are more
even and regions follow objects more than texture:

    |u||v| / (|u| + |v|) · Σ_c w_c (μ_u,c − μ_v,c)² · min(|u|, |v|)^⅛

A region is named by the point it grew from; when it joins another, that name is gone. So a tree of P points is a
pointer and a height for each point, and the P − n lowest pointers are a partition into n regions, nested in n.

Sums are int64: exact for P < 2^31 points of values below 2^32, and also in float64 for values below 2^22. Costs are
float64 from + − × ÷ in the order written, rounded to float32, so that costs in a flat area, which differ in their last
bits, tie. Ties go to the pair with the smallest :func:`chance`. At one region these all differ, so no choice is left
open, and the choices form a forest: on a longer cycle all costs and chances would be equal.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from spit.kernels.portable import running_sum, tree_colors
from spit.kernels.reference.contraction import contract_edges
from spit.kernels.reference.forest import components
from spit.kernels.reference.refinement import refine
from spit.kernels.rules import BLOCK_SIDES, COLOR_STEP, DWARF, DWARF_RATIO, EAGER, MOST_PULL, finer_count, tree_weights


def tree_labels(pixels: Tensor, count: int, compactness: float, sweeps: int) -> Tensor:
    """The partition of every image into ``count`` regions, or as many as it has pixels, after ``sweeps`` of refinement.

    Shape:
        pixels ``(B, C, H, W)`` uint8 to labels ``(B, H, W)`` int32.
    """
    weights = torch.tensor(tree_weights(pixels.shape[1], compactness), dtype=torch.float64)
    labels = []
    for planes, image in zip(tree_colors(pixels), pixels, strict=True):
        tree = grid_tree(planes, weights, None)
        fine = cut_tree(*tree, min(finer_count(count, sweeps), len(tree[0]))).view(image.shape[1:])
        labels.append(recut(fine, planes, weights, image, count, sweeps))
    return torch.stack(labels)


def recut(fine: Tensor, planes: Tensor, weights: Tensor, pixels: Tensor, count: int, sweeps: int, least: int = 1,
          masked: bool = False) -> Tensor:
    """Refine a partition; with two sweeps or more, after the first join its regions to ``count`` by another tree.

    Where λ is 1 or more, sweeps lower the error of what the tree compares, else of the pixels.

    Shape:
        fine ``(H, W)`` int32, as are the labels; planes ``(C, H, W)`` and weights ``(C + 2,)`` as of :func:`grid_tree`;
        pixels, least and masked as of :func:`~spit.kernels.reference.refine`.
    """
    regions = int(fine.max()) + 1
    labels, left = fine, regions
    if weights[len(planes) :].min() >= 1:
        pulls = COLOR_STEP * weights.sqrt().clamp(max=MOST_PULL)
        pixels = (torch.cat([planes.long(), _axes(fine.shape)]) * pulls[:, None, None]).round().int()
    if sweeps > 1:
        labels = refine(fine[None], torch.tensor([0, regions]), pixels[None], 1, least, masked)[0]
        parents, heights = region_tree(planes, labels, weights)
        left = max(min(count, regions), int(heights.isinf().sum()))
        labels = torch.where(labels >= 0, cut_tree(parents, heights, left)[labels.long()], -1)
        sweeps -= 1
    return refine(labels[None], torch.tensor([0, left]), pixels[None], sweeps, least, masked)[0]


def region_tree(planes: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The tree of the regions of a partition, named by their labels.

    Shape:
        planes ``(C, *shape)`` of integers, labels ``(*shape,)`` int32, −1 for no region; the tree as of
        :func:`graph_tree`, without the eager rounds.
    """
    inside = labels.flatten() >= 0
    regions, axes = labels.flatten()[inside].long(), _axes(labels.shape)
    points = torch.cat([planes.long(), axes]).flatten(1).T[inside]
    sizes = torch.bincount(regions)
    sums = points.new_zeros(len(sizes), points.shape[1]).index_add_(0, regions, points)
    pairs = labels.flatten().long()[_grid_edges(labels.shape)]
    pairs = pairs[(pairs >= 0).all(1) & (pairs[:, 0] != pairs[:, 1])]
    return _cluster(sums, sizes, weights, pairs, None, len(EAGER))


def grid_tree(planes: Tensor, weights: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The tree of an image or a volume, whose points have four or six neighbours; points outside the mask have none.

    Shape:
        planes ``(C, H, W)`` or ``(C, D, H, W)`` of integers, weights ``(C + 2,)`` or ``(C + 3,)`` float64 of the bands
        and the axes, mask ``(H, W)`` or ``(D, H, W)`` bool; the tree as in :func:`graph_tree`.
    """
    shape = planes.shape[1:]
    axes = _axes(shape)
    points = torch.cat([planes.long(), axes]).flatten(1).T
    edges = _grid_edges(shape)
    sides = torch.tensor(BLOCK_SIDES[len(shape)][-len(shape) :]).view(-1, *[1] * len(shape))
    blocks = ((axes // sides) * torch.tensor([2**40, 2**20, 1][-len(shape) :]).view(sides.shape)).sum(0).flatten()
    if mask is not None:
        edges = edges[mask.flatten()[edges].all(1)]
    return _cluster(points, torch.ones(len(points), dtype=torch.int64), weights, edges, blocks, 0)


def graph_tree(points: Tensor, weights: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """The tree of any graph.

    Mutual choices join, and more, see :func:`choose`. A height is the cost, or
    the next float32 above the last heights of both regions if that is larger, so that regions of a cut are connected.

    Shape:
        points ``(P, D)`` of integers, weights ``(D,)`` float64, edges ``(E, 2)`` to parents ``(P,)`` int32, the point
        itself for the last name of a component, and heights ``(P,)`` float32, ∞ there.
    """
    return _cluster(points.long(), torch.ones(len(points), dtype=torch.int64), weights, edges, None, 0)


def _cluster(sums: Tensor, sizes: Tensor, weights: Tensor, edges: Tensor, blocks: Tensor | None,
             rounds: int) -> tuple[Tensor, Tensor]:
    """The tree of regions with sums ``(V, D)`` and sizes ``(V,)`` int64, after so many rounds.

    In the rounds of :data:`~spit.kernels.rules.EAGER` regions join within a block alone.
    """
    parents, heights = torch.arange(len(sums)), torch.full((len(sums),), torch.inf)
    names, tops = parents.clone(), torch.zeros(len(sums), dtype=torch.int32)  # tops: the last height of a region
    while len(edges) > 0:
        inner = edges
        if blocks is not None and rounds < len(EAGER):
            inner = edges[blocks[names[edges[:, 0]]] == blocks[names[edges[:, 1]]]]
        chosen, costs = link(inner, sums, sizes, weights, names)
        joins = choose(chosen, costs, sizes, rounds)
        above = torch.maximum(tops, tops[chosen]) + 1  # floats of 0 and more are in the order of their bits
        lasts = torch.where(joins, torch.maximum(costs.view(torch.int32), above), tops)
        parents[names[joins]], heights[names[joins]] = names[chosen[joins]], lasts.view(torch.float32)[joins]
        labels, count = components(torch.where(joins, chosen, torch.arange(len(chosen))))
        names, tops = names[~joins], tops.new_zeros(count).scatter_reduce_(0, labels, lasts, "amax")
        sums = sums.new_zeros(count, sums.shape[1]).index_add_(0, labels, sums)
        sizes = sizes.new_zeros(count).index_add_(0, labels, sizes)
        edges = contract_edges(edges, labels)
        rounds += 1
    return parents.int(), heights


def _axes(shape: Sequence[int]) -> Tensor:
    """The place of each point of a grid along each axis, ``(len(shape), *shape)``."""
    return torch.stack(torch.meshgrid(*map(torch.arange, shape), indexing="ij"))


def _grid_edges(shape: Sequence[int]) -> Tensor:
    """Pairs of neighbouring points of a grid, by their numbers, ``(E, 2)``."""
    names = torch.arange(math.prod(shape)).view(*shape)
    pairs = [(names.narrow(axis, 0, size - 1), names.narrow(axis, 1, size - 1)) for axis, size in enumerate(shape)]
    return torch.cat([torch.stack([first.flatten(), second.flatten()], 1) for first, second in pairs])


def link(edges: Tensor, sums: Tensor, sizes: Tensor, weights: Tensor, names: Tensor) -> tuple[Tensor, Tensor]:
    """Each region's cheapest neighbour and the cost of joining it; the region itself and ∞ if it has none."""
    u, v = edges.unbind(1)
    means = sums.double() / sizes[:, None]
    gap, a, b = means[u] - means[v], sizes[u].double(), sizes[v].double()
    evenness = torch.minimum(a, b).sqrt().sqrt().sqrt()
    costs = ((a * b) / (a + b) * running_sum(weights * (gap * gap)) * evenness).float()
    keys = costs.view(torch.int32).long() << 32 | chance(names)[u] ^ chance(names)[v]
    vertices, none = torch.arange(len(sizes)), torch.tensor([torch.inf]).view(torch.int32).long() << 32
    tails, heads = torch.cat([u, v, vertices]), torch.cat([v, u, vertices])
    keys = torch.cat([keys, keys, none.expand(len(sizes))])
    best = keys.new_full((len(sizes),), torch.iinfo(torch.int64).max).scatter_reduce_(0, tails, keys, "amin")
    winners = keys == best[tails]
    return vertices.scatter(0, tails[winners], heads[winners]), (best >> 32).int().view(torch.float32)


def choose(chosen: Tensor, costs: Tensor, sizes: Tensor, rounds: int) -> Tensor:
    """Which regions join their choice: the second of a mutual pair, and those whose choice prefers a pair not much
    cheaper, see :data:`~spit.kernels.rules.EAGER` and :data:`~spit.kernels.rules.DWARF`."""
    vertices = torch.arange(len(chosen))
    mutual = chosen[chosen] == vertices
    if rounds < len(EAGER):
        near = costs <= EAGER[rounds] * costs[chosen]
    else:
        near = (DWARF * sizes <= sizes[chosen]) & (costs <= DWARF_RATIO * costs[chosen])
    return torch.where(mutual, chosen < vertices, near)


def chance(names: Tensor) -> Tensor:
    """A bijection of 32 bits that looks random; a pair's chance is the exclusive or of both."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        names = (names ^ names >> shift) * factor & 0xFFFFFFFF
    return names ^ names >> 16


def cut_tree(parents: Tensor, heights: Tensor, count: int) -> Tensor:
    """The partition into ``count`` regions, at least one for each component; numbered by their first points.

    Shape:
        parents and heights ``(P,)`` to labels ``(P,)`` int32.
    """
    pointers = parents.long()
    high = heights.sort(stable=True).indices[len(parents) - count :]  # of equal heights, larger names stay apart
    pointers[high] = high
    labels, _ = components(pointers)
    firsts = torch.full((count,), len(labels)).scatter_reduce_(0, labels, torch.arange(len(labels)), "amin")
    return firsts.argsort().argsort()[labels].int()
