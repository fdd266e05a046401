"""Superpixels by parallel edge contraction (§2.2).

A weight is float32 made from + − × ÷ √ alone, one operation at a time in the order written here.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from spit.kernels.reference.regions import compose, join
from spit.kernels.rules import SCALE, Levels, Rules, round_target
from spit.tokens import offsets_of


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """Hierarchical partitions by parallel edge contraction.

    Level t maps the regions of π^(t) to those of π^(t+1); π^(0) has a region for each pixel. There
    are ``rules.levels`` of them, then one for the final merge and one for the bound on the count
    where these are asked for.

    Shape:
        features ``(B, C, H, W)`` int16; each level is ``(parents, counts)``: ``(ΣV,)`` int32 in
        the numbering of each image, and ``(B,)`` int64.
    """
    images = [_contract_image(image, rules) for image in features]
    return [(torch.cat(level), torch.tensor([int(parents.max()) + 1 for parents in level]))
            for level in zip(*images, strict=True)]


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """The last level of :func:`superpixels` alone: the region of each pixel.

    Shape:
        features ``(B, C, H, W)`` int16; labels ``(B, H, W)`` int32, counts ``(B,)`` int64.
    """
    levels = superpixels(features, rules)
    return climb(levels, features, compose), levels[-1][1]


def climb(levels: Levels, features: Tensor, compose: Callable[[list[Tensor], list[Tensor]], Tensor]) -> Tensor:
    """All levels in one: ``(B, H, W)`` labels."""
    batch, _, height, width = features.shape
    pixels = torch.full((batch,), height * width, device=features.device)
    offsets = [offsets_of(counts) for counts in (pixels, *(counts for _, counts in levels))]
    return compose([parents for parents, _ in levels], offsets).view(batch, height, width)


def between(features: Tensor, labels: Tensor, ceiling: Tensor | None, count: int) -> Tensor:
    """The partition of ``count`` regions on the way from one level to the next.

    Regions join where the squared error of their features grows least.

    Args:
        labels: the level below, of more regions than wanted.
        ceiling: the level above, whose regions nothing may cross; None is the whole image.

    Shape:
        features ``(C, H, W)`` int16, labels and ceiling ``(H, W)``, all on the CPU; answer ``(H, W)`` int32.
    """
    labels = labels.long()
    graph = _pixel_graph(features).contract(labels.flatten())
    if ceiling is not None:
        above = torch.zeros(len(graph.sizes), dtype=torch.int64)
        above[labels.flatten()] = ceiling.flatten().long()
        graph.edges = graph.edges[:, above[graph.edges[0]] == above[graph.edges[1]]]
    return _bound(graph, count, Rules(similarity="variance"))[labels].int()


def _pixel_graph(features: Tensor) -> "_Graph":
    channels, height, width = features.shape
    pixels = torch.arange(height * width).reshape(height, width)
    edges = torch.cat([
        torch.stack([pixels[:, :-1].flatten(), pixels[:, 1:].flatten()]),
        torch.stack([pixels[:-1].flatten(), pixels[1:].flatten()]),
    ], dim=1)  # (2, E): E^(0), the four-way adjacency
    y, x = pixels // width, pixels % width
    return _Graph(
        edges=edges,
        sums=features.reshape(channels, -1).T.long(),
        sizes=torch.ones(height * width, dtype=torch.int64),
        low=torch.stack([y.flatten(), x.flatten()], dim=1),
        high=torch.stack([y.flatten(), x.flatten()], dim=1),
    )


def _contract_image(features: Tensor, rules: Rules) -> list[Tensor]:
    graph = _pixel_graph(features)
    levels = []
    for t in range(rules.levels):
        # Density is the same for all pairs of pixels, and pixels have no self-loops (§2.2).
        compactness, loops = (0.0, None) if t == 0 else (rules.compactness, _loop_weights(graph.sizes, rules))
        _, chosen = _best_neighbors(graph, rules.similarity, compactness, loops)
        levels.append(_components(chosen))
        graph = graph.contract(levels[-1])
    if rules.merge_threshold > 0:
        levels.append(_merge_below(graph, rules.merge_threshold))
        graph = graph.contract(levels[-1])
    if rules.max_tokens is not None:
        levels.append(_bound(graph, rules.max_tokens, rules))
    return [level.int() for level in levels]


class _Graph:
    """G^(t): regions with integer sums of their features, sizes and boxes; edges between neighbours."""

    def __init__(self, edges: Tensor, sums: Tensor, sizes: Tensor, low: Tensor, high: Tensor) -> None:
        self.edges = edges  # (2, E)
        self.sums = sums  # (V, C)
        self.sizes = sizes  # (V,)
        self.low, self.high = low, high  # (V, 2): first and last row and column

    def contract(self, parents: Tensor) -> "_Graph":
        """Join the regions with one parent: π_v^(t+1) = ∪ π_u^(t)."""
        count = int(parents.max()) + 1
        edges = parents[self.edges]
        sums = self.sums.new_zeros(count, self.sums.shape[1]).index_add_(0, parents, self.sums)
        sizes = self.sizes.new_zeros(count).index_add_(0, parents, self.sizes)
        rows = parents[:, None].expand(-1, 2)
        low = self.low.new_zeros(count, 2).scatter_reduce_(0, rows, self.low, "amin", include_self=False)
        high = self.high.new_zeros(count, 2).scatter_reduce_(0, rows, self.high, "amax", include_self=False)
        return _Graph(edges[:, edges[0] != edges[1]], sums, sizes, low, high)

    def means(self) -> Tensor:
        """μ_ξ(v), in the units of [−1, 1], ``(V, C)`` float32."""
        return self.sums.float() / (self.sizes * SCALE).float()[:, None]


def _similarity(graph: _Graph, similarity: str) -> Tensor:
    """sim(μ(u), μ(v)) for each edge. The cosine needs no mean: it is the same for sums.

    Variance: −|π_u||π_v| / (|π_u| + |π_v|) · ‖μ(u) − μ(v)‖², by which Σ‖ξ − μ‖² grows when they join.
    """
    u, v = graph.edges
    if similarity == "cosine":
        sums = graph.sums.float()
        norms = exact_sqrt(running_sum(sums * sums))
        unit = sums / torch.where(norms == 0, 1, norms)[:, None]
        return running_sum(unit[u] * unit[v])
    means = graph.means()
    gap = means[u] - means[v]
    if similarity == "variance":
        a, b = graph.sizes[u].float(), graph.sizes[v].float()
        return -((a * b) / (a + b) * running_sum(gap * gap))
    return -exact_sqrt(running_sum(gap * gap))


def exact_sqrt(x: Tensor) -> Tensor:
    """The float32 nearest to √x. torch's own float32 root is one unit off for 1 value in 160 on some CPUs."""
    return x.double().sqrt().float()


def running_sum(x: Tensor) -> Tensor:
    """Sum over the last dimension from left to right, so that rounding has one order."""
    total = x[..., 0]
    for c in range(1, x.shape[-1]):
        total = total + x[..., c]
    return total


def _loop_weights(sizes: Tensor, rules: Rules) -> Tensor | None:
    """w(u, u) = (|π_u| − mean) / std of the sizes in this image, clipped.

    Paper: no clip. A cosine never exceeds 1, so every region one deviation above the mean would
    stay alone and level 4 would keep 1.8 times the paper's own count; the published code clips.
    """
    if rules.loop_clip is None:
        return None
    mean = int(sizes.sum()) / len(sizes)
    variance = int((sizes * sizes).sum()) / len(sizes) - mean * mean
    if variance <= 0:
        return torch.zeros(len(sizes))
    weights = (sizes.double() - rules.loop_mean * mean) / math.sqrt(variance)
    return weights.clamp(-rules.loop_clip, rules.loop_clip).float()


def _density(graph: _Graph, u: Tensor, v: Tensor) -> Tensor:
    """δ_∞(u, v) = 4 (|π_u| + |π_v|) / per_∞(u, v)², the perimeter counted in pixels.

    A self-loop counts its region once. Twice, as the formula reads for u = v, would make it denser
    than any union, so that λ near 1 would stop every region from joining.
    """
    sides = torch.maximum(graph.high[u], graph.high[v]) - torch.minimum(graph.low[u], graph.low[v]) + 1
    perimeter = 2 * (sides[:, 0] + sides[:, 1])
    sizes = graph.sizes[u] + torch.where(u == v, 0, graph.sizes[v])
    return (4 * sizes).float() / (perimeter * perimeter).float()


def _best_neighbors(
    graph: _Graph, similarity: str, compactness: float, loops: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Ê: the heaviest edge at each region, w(u, v; λ) = λ δ_∞(u, v) + (1 − λ) w(u, v).

    Ties go to the neighbour with the smallest number. With that rule the choices form a forest
    whose roots are self-loops or mutual pairs: on a longer cycle all weights would be equal, and
    the region after the smallest one would have chosen the smallest one.
    """
    count = len(graph.sizes)
    vertices = torch.arange(count)
    u, v = graph.edges
    weights = _similarity(graph, similarity)
    if compactness > 0:
        ratio = torch.tensor([compactness, 1 - compactness], dtype=torch.float32)
        weights = ratio[0] * _density(graph, u, v) + ratio[1] * weights
        if loops is not None:
            loops = ratio[0] * _density(graph, vertices, vertices) + ratio[1] * loops
    tails, heads, weights = torch.cat([u, v]), torch.cat([v, u]), weights.repeat(2)
    if loops is not None:
        tails, heads, weights = torch.cat([tails, vertices]), torch.cat([heads, vertices]), torch.cat([weights, loops])
    best = torch.full((count,), -torch.inf).scatter_reduce_(0, tails, weights, "amax")
    winners = weights == best[tails]
    chosen = vertices.scatter_reduce(0, tails[winners], heads[winners], "amin", include_self=False)
    return best, chosen


def _break_pairs(chosen: Tensor) -> Tensor:
    """Make the smaller of two regions that chose each other a root."""
    vertices = torch.arange(len(chosen))
    return torch.where((chosen[chosen] == vertices) & (vertices < chosen), vertices, chosen)


def _components(chosen: Tensor) -> Tensor:
    """Ê₊: follow the choices to their roots; roots are numbered in their own order."""
    parents = _break_pairs(chosen)
    while not torch.equal(parents, parents[parents]):
        parents = parents[parents]
    roots = parents == torch.arange(len(parents))
    return (roots.cumsum(0) - 1)[parents]


def _merge_below(graph: _Graph, threshold: float) -> Tensor:
    """Final thresholding (App. B): join all neighbours whose means are closer than the threshold."""
    u, v = graph.edges
    means = graph.means()
    gap = means[u] - means[v]
    near = running_sum(gap * gap) < torch.tensor(threshold * threshold, dtype=torch.float32)
    return _components(join(len(graph.sizes), u[near], v[near]))


def _bound(graph: _Graph, bound: int, rules: Rules) -> Tensor:
    """Join regions until at most ``bound`` are left, in rounds without self-loops.

    A level would join every region to its best neighbour. Of these choices, a forest, a round takes
    only the heaviest, see :func:`round_target`; each takes away exactly one region.
    """
    parents = torch.arange(len(graph.sizes))
    while len(graph.sizes) > bound:
        target = round_target(len(graph.sizes), bound)
        weights, chosen = _best_neighbors(graph, rules.similarity, rules.compactness, None)
        chosen = _break_pairs(chosen)
        vertices = torch.arange(len(chosen))
        children = vertices[chosen != vertices]
        heaviest = weights[children].sort(descending=True, stable=True).indices
        spared = children[heaviest[len(vertices) - target :]]
        chosen[spared] = spared
        level = _components(chosen)
        graph = graph.contract(level)
        parents = level[parents]
    return parents
