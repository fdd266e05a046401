"""One level of contraction (§2.2): points, weights, choices and sums, on the regions of one image."""

import math

import torch
from torch import Tensor

from spit.kernels.portable import exact_sqrt, running_sum
from spit.kernels.rules import COSINE, SCALE, VARIANCE


def region_points(sums: Tensor, sizes: Tensor, kind: int) -> Tensor:
    """What is compared, ``(V, C)`` float32: sums at unit length for the cosine, else means μ_ξ(v).

    The cosine needs no mean: it is the same for sums.
    """
    values = sums.float()
    if kind == COSINE:
        lengths = exact_sqrt(running_sum(values * values))
        lengths = torch.where(lengths == 0, 1, lengths)
    else:
        lengths = (sizes * SCALE).float()
    return values / lengths[:, None]


def similarity(edges: Tensor, points: Tensor, sizes: Tensor, kind: int) -> Tensor:
    """sim(μ(u), μ(v)) for each edge.

    Variance: −|π_u||π_v| / (|π_u| + |π_v|) · ‖μ(u) − μ(v)‖², by which Σ‖ξ − μ‖² grows when they join.
    """
    u, v = edges.unbind(1)
    if kind == COSINE:
        return running_sum(points[u] * points[v])
    gap = points[u] - points[v]
    distance = running_sum(gap * gap)
    if kind == VARIANCE:
        a, b = sizes[u].float(), sizes[v].float()
        return -((a * b) / (a + b) * distance)
    return -exact_sqrt(distance)


def loop_weights(sizes: Tensor, clip: float) -> Tensor:
    """w(u, u) = (|π_u| − mean) / std of the sizes in this image, clipped.

    Paper: no clip. A cosine never exceeds 1, so every region one deviation above the mean would
    stay alone and level 4 would keep 1.8 times the paper's own count; the published code clips.
    """
    mean = int(sizes.sum()) / len(sizes)
    variance = int((sizes * sizes).sum()) / len(sizes) - mean * mean
    if variance <= 0:
        return torch.zeros(len(sizes))
    weights = (sizes.double() - mean) / math.sqrt(variance)
    return weights.clamp(-clip, clip).float()


def density(u: Tensor, v: Tensor, sizes: Tensor, boxes: Tensor) -> Tensor:
    """δ_∞(u, v) = 4 (|π_u| + |π_v|) / per_∞(u, v)², with the perimeter counted in pixels.

    A self-loop counts its region once. Twice, as the formula reads for u = v, would make it denser
    than any union, so that λ near 1 would stop every region from joining.
    """
    sides = torch.maximum(boxes[u, 2:], boxes[v, 2:]) - torch.minimum(boxes[u, :2], boxes[v, :2]) + 1
    perimeter = 2 * (sides[:, 0] + sides[:, 1])
    total = sizes[u] + torch.where(u == v, 0, sizes[v])
    return (4 * total).float() / (perimeter * perimeter).float()


def link_regions(edges: Tensor, points: Tensor, sizes: Tensor, boxes: Tensor, loops: Tensor, compactness: float,
                 kind: int) -> tuple[Tensor, Tensor]:
    """Ê: the heaviest edge at each region, w(u, v; λ) = λ δ_∞(u, v) + (1 − λ) w(u, v); its end and its weight.

    Ties go to the neighbour with the smallest number. With that rule the choices form a forest
    whose roots are self-loops or mutual pairs: on a longer cycle all weights would be equal, and
    the region after the smallest one would have chosen the smallest one.

    Shape:
        edges ``(E, 2)``, points ``(V, C)``, sizes ``(V,)``, boxes ``(V, 4)``, loops ``(V,)`` or ``(0,)``; both
        results ``(V,)``.
    """
    u, v = edges.unbind(1)
    vertices = torch.arange(len(sizes))
    own = vertices[: len(loops)]
    weights = similarity(edges, points, sizes, kind)
    if compactness > 0:
        ratio = torch.tensor([compactness, 1 - compactness], dtype=torch.float32)
        weights = ratio[0] * density(u, v, sizes, boxes) + ratio[1] * weights
        loops = ratio[0] * density(own, own, sizes, boxes) + ratio[1] * loops
    tails, heads, weights = torch.cat([u, v, own]), torch.cat([v, u, own]), torch.cat([weights, weights, loops])
    best = torch.full((len(sizes),), -torch.inf).scatter_reduce_(0, tails, weights, "amax")
    winners = weights == best[tails]
    chosen = vertices.scatter_reduce(0, tails[winners], heads[winners], "amin", include_self=False)
    return chosen, best


def adjacency(height: int, width: int) -> Tensor:
    """E^(0), the four-way adjacency of pixels, ``(E, 2)``."""
    pixels = torch.arange(height * width).reshape(height, width)
    return torch.cat([torch.stack([pixels[:, :-1].flatten(), pixels[:, 1:].flatten()], dim=1),
                      torch.stack([pixels[:-1].flatten(), pixels[1:].flatten()], dim=1)])


def contract_edges(edges: Tensor, labels: Tensor) -> Tensor:
    """The edges between the regions above."""
    edges = labels[edges]
    return edges[edges[:, 0] != edges[:, 1]]


def sum_regions(sums: Tensor, sizes: Tensor, boxes: Tensor, labels: Tensor,
                count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sums, sizes and boxes of the regions above, π_v^(t+1) = ∪ π_u^(t)."""
    rows = labels[:, None].expand(-1, 2)
    low, high = (boxes.new_zeros(count, 2).scatter_reduce_(0, rows, corner, extreme, include_self=False)
                 for corner, extreme in ((boxes[:, :2], "amin"), (boxes[:, 2:], "amax")))
    return (sums.new_zeros(count, sums.shape[1]).index_add_(0, labels, sums),
            sizes.new_zeros(count).index_add_(0, labels, sizes), torch.cat([low, high], dim=1))
