"""The tree of connected Ward clustering written a second time, from docs/superpixels.md, slowly and in plain Python.

Nothing of spit is imported. A region is a list of points; sums, means and neighbours are computed again from the points
in every round. numpy serves for float32 alone.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

EAGER = (1024, 32, 4)
BLOCK = 64
Point = tuple[int, ...]
Edge = tuple[int, int]
Merge = tuple[float, int, int]
"""Height, the name that is gone, and the name of the region that it joined."""


def superpixels(image: Any, n: int, compactness: float, mask: Any = None, share: float = 1) -> list[list[int]]:
    """Labels of ``(H, W, C)`` uint8 before refinement, from 0 in the mask and −1 outside; a band counts ``share``."""
    height, width, _ = image.shape
    inside = [bool(mask is None or mask[y, x]) for y in range(height) for x in range(width)]
    points = [(*colors([int(value) for value in image[y, x]]), y, x) for y in range(height) for x in range(width)]
    weights = [share / 256] * (len(points[0]) - 2) + [compactness * compactness] * 2
    edges = [(p, q) for p in range(height * width) for q in (p + 1, p + width)
             if q < height * width and (q == p + width or q % width) and inside[p] and inside[q]]
    merges = tree(points, weights, edges, [(y // BLOCK, x // BLOCK) for y in range(height) for x in range(width)])
    outside = inside.count(False)
    labels = cut(merges, len(points), max(min(n + outside, len(points)), len(points) - len(merges)))
    found: dict[int, int] = {}
    labels = [found.setdefault(label, len(found)) if here else -1 for label, here in zip(labels, inside, strict=True)]
    return [labels[y * width : (y + 1) * width] for y in range(height)]


def joined(image: Any, regions: list[list[tuple[int, int]]], n: int, compactness: float,
           share: float = 1) -> list[list[tuple[int, int]]]:
    """Regions, lists of (row, column), joined to n by a tree of theirs."""
    groups = [[(*colors([int(value) for value in image[pixel]]), *pixel) for pixel in region] for region in regions]
    number = {pixel: v for v, region in enumerate(regions) for pixel in region}
    edges = [(v, number[other]) for (y, x), v in number.items() for other in ((y, x + 1), (y + 1, x))
             if number.get(other, v) != v]
    weights = [share / 256] * (len(groups[0][0]) - 2) + [compactness * compactness] * 2
    labels = cut(cluster(groups, weights, edges, None, len(EAGER)), len(groups), min(n, len(groups)))
    answer: dict[int, list[tuple[int, int]]] = {}
    for label, region in zip(labels, regions, strict=True):
        answer.setdefault(label, []).extend(region)
    return [sorted(answer[label]) for label in sorted(answer)]


def colors(values: list[int]) -> list[int]:
    """Sixteenths of 8-bit steps around the middle; three of them one and a half times as saturated."""
    values = [16 * value - 2048 for value in (values * 3 if len(values) == 1 else values)]
    if len(values) != 3:
        return values
    luma = (1225 * values[0] + 2404 * values[1] + 467 * values[2] + 2048) // 4096
    return [max(-2048, min(2048, luma + (6144 * (value - luma) + 2048) // 4096)) for value in values]


def tree(points: Sequence[Point], weights: Sequence[float], edges: Sequence[Edge],
         blocks: Sequence[tuple[int, int]] | None = None) -> list[Merge]:
    return cluster([[point] for point in points], weights, edges, blocks, 0)


def cluster(groups: Sequence[list[Point]], weights: Sequence[float], edges: Sequence[Edge],
            blocks: Sequence[tuple[int, int]] | None, turns: int) -> list[Merge]:
    """The merges of groups of points after so many turns."""
    regions = {name: list(group) for name, group in enumerate(groups)}
    owner = list(range(len(groups)))
    last = dict.fromkeys(regions, np.float32(0))
    merges: list[Merge] = []
    for turn in range(turns, len(groups) + len(EAGER) + 1):
        best: dict[int, tuple[np.float32, int, int]] = {}
        for u, v in {(owner[p], owner[q]) for p, q in edges}:
            if u != v and (blocks is None or turn >= len(EAGER) or blocks[u] == blocks[v]):
                weight = cost(regions[u], regions[v], weights)
                for own, other in ((u, v), (v, u)):
                    best[own] = min(best.get(own, (np.float32(np.inf), 0, 0)), (weight, chance(u) ^ chance(v), other))
        joins = {}
        for own, (weight, _, other) in best.items():
            if best[other][2] == own:
                if other < own:
                    joins[own] = other
            elif weight <= np.float32(EAGER[turn] if turn < len(EAGER) else 1.25) * best[other][0] and (
                    turn < len(EAGER) or 16 * len(regions[own]) <= len(regions[other])):
                joins[own] = other
        heights = {own: max(best[own][0], np.nextafter(max(last[own], last[other]), np.float32(np.inf)))
                   for own, other in joins.items()}
        merges += [(float(height), own, joins[own]) for own, height in heights.items()]
        for own in joins:
            root = own
            while root in joins:
                root = joins[root]
            regions[root] += regions.pop(own)
            last[root] = max(last[root], heights[own])
            owner = [root if name == own else name for name in owner]
        if not best and turn >= len(EAGER):
            break
    return merges


def cost(one: list[Point], other: list[Point], weights: Sequence[float]) -> np.float32:
    """|u||v| / (|u| + |v|) · Σ w (μ_u − μ_v)² · min(|u|, |v|)^⅛, rounded to float32."""
    a, b = float(len(one)), float(len(other))
    total = None
    for band, weight in enumerate(weights):
        gap = sum(point[band] for point in one) / len(one) - sum(point[band] for point in other) / len(other)
        term = weight * (gap * gap)
        total = term if total is None else total + term
    return np.float32((a * b) / (a + b) * total * math.sqrt(math.sqrt(math.sqrt(min(a, b)))))


def chance(name: int) -> int:
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        name = (name ^ name >> shift) * factor % 2**32
    return name ^ name >> 16


def cut(merges: list[Merge], points: int, count: int) -> list[int]:
    """The region of each point after the lowest merges, numbered by their first points."""
    above = {gone: name for _, gone, name in sorted(merges)[: points - count]}
    numbers: dict[int, int] = {}
    labels = []
    for point in range(points):
        root = point
        while root in above:
            root = above[root]
        labels.append(numbers.setdefault(root, len(numbers)))
    return labels
