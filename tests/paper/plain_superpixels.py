"""Superpixels written a second time, from §2.2, App. B and docs/superpixels.md, to compare spit's backends with.

Nothing of spit is imported. A region is a list of pixels and its number is its place in a list of regions. Neighbours,
sums, means, boxes and sizes are computed again from the pixels whenever a partition changes. numpy serves for float32
alone: a weight is made of single operations on float32 in the order of its formula, which decides between near ties.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

F = np.float32
SCALE = 2048
Pixel = tuple[int, int]
Region = list[Pixel]
Colors = dict[Pixel, tuple[int, ...]]
Pair = tuple[int, int]


def pixel_values(planes: Sequence[Any]) -> Colors:
    """Each pixel's values, from ``(C, H, W)``."""
    height, width = len(planes[0]), len(planes[0][0])
    return {(y, x): tuple(int(plane[y][x]) for plane in planes) for y in range(height) for x in range(width)}


def regions_of(labels: Sequence[Sequence[int]]) -> list[Region]:
    regions: dict[int, Region] = {}
    for y, row in enumerate(labels):
        for x, label in enumerate(row):
            regions.setdefault(int(label), []).append((y, x))
    return [regions[label] for label in range(len(regions))]


def labels_of(regions: list[Region]) -> list[list[int]]:
    number = numbers(regions)
    height, width = (1 + max(pixel[axis] for pixel in number) for axis in (0, 1))
    return [[number[y, x] for x in range(width)] for y in range(height)]


def numbers(regions: list[Region]) -> dict[Pixel, int]:
    return {pixel: v for v, region in enumerate(regions) for pixel in region}


def superpixel_features(planes: list[list[list[int]]], saturated: bool) -> list[list[list[int]]]:
    """App. B: contrast by Kumaraswamy's distribution function, saturation, and diffusion, in integers."""
    if saturated and len(planes) == 1:
        planes = planes * 3
    tables = contrast_tables(len(planes))
    planes = [[[table[value] for value in row] for row in plane] for table, plane in zip(tables, planes, strict=True)]
    if saturated:
        for y, rows in enumerate(zip(*planes, strict=True)):
            for x, (red, green, blue) in enumerate(zip(*rows, strict=True)):
                luma = (1225 * red + 2404 * green + 467 * blue + 2048) // 4096
                for plane, value in zip(planes, (red, green, blue), strict=True):
                    plane[y][x] = clip(luma + (round(2.718 * 4096) * (value - luma) + 2048) // 4096)
    for _ in range(4):
        planes = [diffused(plane) for plane in planes]
    return planes


@cache
def contrast_tables(channels: int) -> list[list[int]]:
    means, shapes = (0.485, 0.456, 0.406), (0.539, 0.507, 0.404)
    if channels != 3:
        means, shapes = ((sum(values) / 3,) * channels for values in (means, shapes))
    tables = []
    for mean, shape in zip(means, shapes, strict=True):
        power = -math.log(2) / math.log(1 - mean**shape)  # the mean goes to 0
        tables.append([round((1 - 2 * (1 - (value / 255) ** shape) ** power) * SCALE) for value in range(256)])
    return tables


@cache
def flux(difference: int) -> int:
    return round(0.5 * math.exp(-((difference / SCALE / 0.1) ** 2)) * difference)


def diffused(plane: list[list[int]]) -> list[list[int]]:
    height, width = len(plane), len(plane[0])
    return [[clip(plane[y][x] + sum(flux_between(plane[y][x], plane[v][u]) for v, u in sides((y, x))
                                    if 0 <= v < height and 0 <= u < width)) for x in range(width)]
            for y in range(height)]


def flux_between(here: int, there: int) -> int:
    return flux(there - here)


def clip(value: int) -> int:
    return max(-SCALE, min(SCALE, value))


def sides(pixel: Pixel) -> list[Pixel]:
    """North, west, east and south."""
    y, x = pixel
    return [(y - 1, x), (y, x - 1), (y, x + 1), (y + 1, x)]


# --- contraction ----------------------------------------------------------------------------------


def contract(features: Colors, *, levels: int, similarity: str, loop_clip: float | None,
             compactness: float = 0.0, merge_threshold: float = 0.0,
             max_tokens: int | None = None) -> list[list[Region]]:
    """π^(0) to π^(T), then the final merge and the bound on the count if they are set."""
    regions = [[pixel] for pixel in sorted(features)]
    hierarchy = [regions]
    for level in range(levels):
        pixels = level == 0  # pairs of pixels are equally dense, and pixels have no self-loops
        weights = pair_weights(features, regions, similarity, 0.0 if pixels else compactness)
        if not pixels and loop_clip is not None:
            weights |= loop_weights(regions, loop_clip, compactness)
        regions = join(regions, as_forest(heaviest(weights, len(regions))))
        hierarchy.append(regions)
    if merge_threshold > 0:
        regions = merge(features, regions, merge_threshold)
        hierarchy.append(regions)
    if max_tokens is not None:
        hierarchy.append(rounds(features, regions, max_tokens, similarity, compactness))
    return hierarchy


def rounds(features: Colors, regions: list[Region], limit: int, similarity: str, compactness: float = 0.0,
           ceiling: list[Region] | None = None) -> list[Region]:
    """Join until ``limit`` regions are left, within those of the ceiling.

    A round joins the best eighth; from more than 16 times the limit, all that are more than that.
    """
    while (count := len(regions)) > limit:
        weights = pair_weights(features, regions, similarity, compactness)
        if ceiling is not None:
            above = numbers(ceiling)
            weights = {(u, v): weight for (u, v), weight in weights.items()
                       if above[regions[u][0]] == above[regions[v][0]]}
        best = heaviest(weights, count)
        parents = as_forest(best)
        children = sorted((u for u in range(count) if parents[u] != u), key=lambda u: (-best[u][0], u))
        for u in children[min(count - limit, max(count // 8, count - 16 * limit, 1)):]:
            parents[u] = u
        regions = join(regions, parents)
    return regions


def merge(features: Colors, regions: list[Region], threshold: float) -> list[Region]:
    """App. B: join all neighbours whose means are closer than the threshold."""
    means = [mean(features, region) for region in regions]
    smallest = list(range(len(regions)))
    close = [(u, v) for u, v in neighbors(regions) if squared_distance(means[u], means[v]) < F(threshold * threshold)]
    for _ in regions:
        for u, v in close:
            smallest[u] = smallest[v] = min(smallest[u], smallest[v])
    return join(regions, smallest)


def neighbors(regions: list[Region]) -> list[Pair]:
    number = numbers(regions)
    pairs = {(number[pixel], number[side]) for pixel in number for side in sides(pixel) if side in number}
    return sorted((u, v) for u, v in pairs if u < v)


def heaviest(weights: dict[Pair, F], count: int) -> list[tuple[F, int]]:
    """For each region the weight and the other end of its heaviest edge, the smallest number among equals."""
    options: list[list[tuple[F, int]]] = [[] for _ in range(count)]
    for (u, v), weight in weights.items():
        options[u].append((weight, v))
        if u != v:
            options[v].append((weight, u))
    return [min(edges, key=lambda edge: (-edge[0], edge[1])) if edges else (F(0), u) for u, edges in enumerate(options)]


def as_forest(best: list[tuple[F, int]]) -> list[int]:
    """Each region's parent. Of two that chose each other the smaller is a root."""
    chosen = [v for _, v in best]
    return [u if chosen[v] == u and u < v else v for u, v in enumerate(chosen)]


def join(regions: list[Region], parents: list[int]) -> list[Region]:
    """One region for each tree, in the order of the roots."""
    trees: dict[int, Region] = {u: [] for u, parent in enumerate(parents) if parent == u}
    for u, region in enumerate(regions):
        root = u
        while parents[root] != root:
            root = parents[root]
        trees[root] += region
    return [trees[root] for root in sorted(trees)]


def pair_weights(features: Colors, regions: list[Region], similarity: str, compactness: float) -> dict[Pair, F]:
    """w(u, v; λ) = λ δ(u, v) + (1 − λ) sim(u, v)."""
    points = [(unit if similarity == "cosine" else mean)(features, region) for region in regions]
    weights = {}
    for u, v in neighbors(regions):
        weights[u, v] = compare(similarity, points[u], points[v], len(regions[u]), len(regions[v]))
        if compactness > 0:
            weights[u, v] = mix(compactness, density(regions[u] + regions[v]), weights[u, v])
    return weights


def compare(similarity: str, a: list[F], b: list[F], size_a: int, size_b: int) -> F:
    if similarity == "cosine":
        return added(p * q for p, q in zip(a, b, strict=True))
    if similarity == "euclidean":
        return -np.sqrt(squared_distance(a, b))
    return -(F(size_a) * F(size_b) / (F(size_a) + F(size_b)) * squared_distance(a, b))


def loop_weights(regions: list[Region], loop_clip: float, compactness: float) -> dict[Pair, F]:
    """w(u, u) = (size − mean) / deviation of the sizes, clipped; computed in float64, then rounded."""
    sizes = [len(region) for region in regions]
    average = sum(sizes) / len(sizes)
    variance = sum(size**2 for size in sizes) / len(sizes) - average * average
    loops = {}
    for u, size in enumerate(sizes):
        loop = (size - average) / math.sqrt(variance) if variance > 0 else 0.0
        loops[u, u] = F(max(-loop_clip, min(loop_clip, loop)))
        if compactness > 0:
            loops[u, u] = mix(compactness, density(regions[u]), loops[u, u])
    return loops


def mix(compactness: float, dense: F, alike: F) -> F:
    return F(compactness) * dense + F(1 - compactness) * alike


def density(region: Region) -> F:
    """δ = 4 size / perimeter² of the bounding box."""
    rows, columns = zip(*region, strict=True)
    perimeter = 2 * (max(rows) - min(rows) + 1 + max(columns) - min(columns) + 1)
    return F(4 * len(region)) / F(perimeter**2)


def total(features: Colors, region: Region) -> list[int]:
    return [sum(values) for values in zip(*(features[pixel] for pixel in region), strict=True)]


def mean(features: Colors, region: Region, scale: int = SCALE) -> list[F]:
    return [F(value) / F(len(region) * scale) for value in total(features, region)]


def unit(features: Colors, region: Region) -> list[F]:
    """The sum at length 1; 0 stays 0."""
    sums = [F(value) for value in total(features, region)]
    length = np.sqrt(added(value * value for value in sums))
    return [value / length if length > 0 else value for value in sums]


def squared_distance(a: Iterable[F], b: Iterable[F]) -> F:
    return added((p - q) * (p - q) for p, q in zip(a, b, strict=True))


def added(terms: Iterable[F]) -> F:
    first, *rest = terms
    for term in rest:
        first = first + term
    return first


# --- refinement -----------------------------------------------------------------------------------


def refined(colors: Colors, regions: list[Region], sweeps: int, least: int = 1) -> list[Region]:
    """Move boundary pixels to the neighbour that lowers the squared error most; a quarter of the grid at a time.

    Regions give away what they have above ``least`` pixels, the first pixels first.
    """
    regions = [list(region) for region in regions]
    for _ in range(sweeps):
        for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
            number = numbers(regions)
            error = move_errors(colors, regions)
            moves = {pixel: best_region(pixel, number, error) for pixel in colors
                     if pixel[0] % 2 == row and pixel[1] % 2 == column and removable(pixel, number)}
            spare = [len(region) - least for region in regions]
            regions = [[] for _ in regions]
            for pixel, own in sorted(number.items()):
                moves_on = moves.get(pixel, own) != own and spare[own] > 0
                spare[own] -= moves_on
                regions[moves[pixel] if moves_on else own].append(pixel)
    return regions


def move_errors(colors: Colors, regions: list[Region]) -> Callable[[Pixel, int, bool], F]:
    """The squared error that a pixel adds to its own region, n / (n − 1) · d², or to another, n / (n + 1) · d²."""
    means = [mean(colors, region, scale=1) for region in regions]
    sizes = [F(len(region)) for region in regions]

    def error(pixel: Pixel, v: int, own: bool) -> F:
        factor = sizes[v] / (sizes[v] - F(1)) if own else sizes[v] / (sizes[v] + F(1))
        return factor * squared_distance([F(value) for value in colors[pixel]], means[v])

    return error


def best_region(pixel: Pixel, number: dict[Pixel, int], error: Callable[[Pixel, int, bool], F]) -> int:
    own = number[pixel]
    others = [number[side] for side in sides(pixel) if side in number and number[side] != own]
    options = [(error(pixel, own, True), own), *((error(pixel, v, False), v) for v in others)]
    return min(options, key=lambda option: option[0])[1]  # the first of equals


def removable(pixel: Pixel, number: dict[Pixel, int]) -> bool:
    """Whether the pixel's region goes on around it: its sides there are connected within the eight neighbours."""
    y, x = pixel
    ring = {(v, u) for v in (y - 1, y, y + 1) for u in (x - 1, x, x + 1)
            if (v, u) != pixel and number.get((v, u)) == number[pixel]}
    own_sides = [side for side in sides(pixel) if side in ring]
    if not own_sides:
        return False
    reached, waiting = set(), [own_sides[0]]
    while waiting:
        here = waiting.pop()
        if here not in reached:
            reached.add(here)
            waiting += [side for side in sides(here) if side in ring]
    return reached.issuperset(own_sides)
