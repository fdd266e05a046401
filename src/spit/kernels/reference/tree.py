"""Superpixels as a cut through a tree: connected Ward clustering of the points of a graph.

Not in the paper. Each round, regions that are each other's cheapest neighbour join, all such pairs at once, until every
connected component of the graph is one region. The first rounds are more eager, and stay within fixed blocks of a grid,
so that threads share an image and a large one is read part by part. The cost of joining u and v is the growth of the
squared error (Ward, 1963), with the position among the bands:

    |u||v| / (|u| + |v|) · Σ_c w_c (μ_u,c − μ_v,c)²

A region is named by the point it grew from; when it joins another, that name is gone. So a tree of P points is a
pointer and a height for each point, and the P − n lowest pointers are a partition into n regions, nested in n.

Sums are int64: exact for P < 2^31 points of values below 2^32, and also in float64 for values below 2^22. Costs are
float64 from + − × ÷ in the order written, rounded to float32, so that costs in a flat area, which differ in their last
bits, tie. Ties go to the pair with the smallest :func:`chance`. At one region these all differ, so no choice is left
open, and the choices form a forest: on a longer cycle all costs and chances would be equal.
"""

import torch
from torch import Tensor

from spit.kernels.portable import running_sum, tree_colors
from spit.kernels.reference.contraction import contract_edges
from spit.kernels.reference.forest import components
from spit.kernels.rules import BLOCK_SIDES, DWARF, DWARF_RATIO, EAGER, tree_weights


def tree_labels(pixels: Tensor, count: int, compactness: float) -> Tensor:
    """The partition of every image into ``count`` regions, or as many as it has pixels.

    Shape:
        pixels ``(B, C, H, W)`` uint8 to labels ``(B, H, W)`` int32.
    """
    weights = torch.tensor(tree_weights(pixels.shape[1], compactness), dtype=torch.float64)
    trees = [grid_tree(planes, weights, None) for planes in tree_colors(pixels)]
    return torch.stack([cut_tree(*tree, min(count, len(tree[0]))) for tree in trees]).view(-1, *pixels.shape[2:])


def grid_tree(planes: Tensor, weights: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The tree of an image or a volume, whose points have four or six neighbours; points outside the mask have none.

    Shape:
        planes ``(C, H, W)`` or ``(C, D, H, W)`` of integers, weights ``(C + 2,)`` or ``(C + 3,)`` float64 of the bands
        and the axes, mask ``(H, W)`` or ``(D, H, W)`` bool; the tree as in :func:`graph_tree`.
    """
    shape = planes.shape[1:]
    axes = torch.stack(torch.meshgrid(*map(torch.arange, shape), indexing="ij"))
    points = torch.cat([planes.long(), axes]).flatten(1).T
    names = torch.arange(len(points)).view(shape)
    pairs = [(names.narrow(axis, 0, size - 1), names.narrow(axis, 1, size - 1)) for axis, size in enumerate(shape)]
    edges = torch.cat([torch.stack([first.flatten(), second.flatten()], 1) for first, second in pairs])
    sides = torch.tensor(BLOCK_SIDES[len(shape)][-len(shape) :]).view(-1, *[1] * len(shape))
    blocks = ((axes // sides) * torch.tensor([2**40, 2**20, 1][-len(shape) :]).view(sides.shape)).sum(0).flatten()
    if mask is not None:
        edges = edges[mask.flatten()[edges].all(1)]
    return graph_tree(points, weights, edges, blocks)


def graph_tree(points: Tensor, weights: Tensor, edges: Tensor, blocks: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The tree of any graph.

    Mutual choices join, and more, see :func:`choose`. A height is the cost, or
    the next float32 above the last heights of both regions if that is larger, so that regions of a cut are connected.

    Args:
        blocks: in the rounds of :data:`~spit.kernels.rules.EAGER`, regions join within a block alone.

    Shape:
        points ``(P, D)`` of integers, weights ``(D,)`` float64, edges ``(E, 2)`` to parents ``(P,)`` int32, the point
        itself for the last name of a component, and heights ``(P,)`` float32, ∞ there.
    """
    parents, heights = torch.arange(len(points)), torch.full((len(points),), torch.inf)
    names, tops = parents.clone(), torch.zeros(len(points), dtype=torch.int32)  # tops: the last height of a region
    sums, sizes = points.long(), torch.ones_like(parents)
    rounds = 0
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


def link(edges: Tensor, sums: Tensor, sizes: Tensor, weights: Tensor, names: Tensor) -> tuple[Tensor, Tensor]:
    """Each region's cheapest neighbour and the cost of joining it; the region itself and ∞ if it has none."""
    u, v = edges.unbind(1)
    means = sums.double() / sizes[:, None]
    gap, a, b = means[u] - means[v], sizes[u].double(), sizes[v].double()
    costs = ((a * b) / (a + b) * running_sum(weights * (gap * gap))).float()
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
