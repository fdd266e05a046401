"""The edges between regions in Triton, from the pixels (§2.2): no list of them is kept.

A lane has a square of four pixels a b / c d with the next pixels to the east and to the south, so eight pairs of
neighbours. Regions that occur more than once in a square get one offer, the best: half of all atomics.
"""

import triton
import triton.language as tl

from spit.kernels import rules
from spit.kernels.triton.links import NOBODY, VARIANCE, about, density, key, products
from spit.kernels.triton.squares import square_at

EUCLIDEAN = tl.constexpr(rules.EUCLIDEAN)


@triton.jit
def weigh_edges(labels, up, new_labels, records, keys, height, width, tiles, room, ratio_density, ratio_similarity,
                MAPPED: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr, STRIDE: tl.constexpr, KIND: tl.constexpr,
                BOXES: tl.constexpr, NARROW: tl.constexpr, BLOCK: tl.constexpr):
    """Offer every edge to its two regions: raise their keys to the best."""
    image = tl.program_id(1).to(tl.int64)
    start = image * height * width
    a, b, c, d, b_east, d_east, c_south, d_south = _square(
        labels + start, up + image * room, new_labels + start, height, width, tiles, MAPPED, BLOCK)
    records += image * room * STRIDE
    keys += image * room
    edge = (_differ(a, b) | _differ(a, c) | _differ(b, d) | _differ(c, d) | _differ(b, b_east) | _differ(d, d_east)
            | _differ(c, c_south) | _differ(d, d_south))
    at_a = about(records, a, edge & (a >= 0), C, WIDTH, STRIDE, BOXES, BLOCK)
    at_b = about(records, b, edge & (b >= 0), C, WIDTH, STRIDE, BOXES, BLOCK)
    at_c = about(records, c, edge & (c >= 0), C, WIDTH, STRIDE, BOXES, BLOCK)
    at_d = about(records, d, edge & (d >= 0), C, WIDTH, STRIDE, BOXES, BLOCK)
    ratios = (ratio_density, ratio_similarity)
    to_a, to_b = _offers(a, b, at_a, at_b, ratios, C, KIND, BOXES, NARROW)
    more, to_c = _offers(a, c, at_a, at_c, ratios, C, KIND, BOXES, NARROW)
    to_a = tl.maximum(to_a, more)
    more, to_d = _offers(b, d, at_b, at_d, ratios, C, KIND, BOXES, NARROW)
    to_b = tl.maximum(to_b, more)
    more, again = _offers(c, d, at_c, at_d, ratios, C, KIND, BOXES, NARROW)
    to_c, to_d = tl.maximum(to_c, more), tl.maximum(to_d, again)
    to_b, to_b_east = _reach(records, b, b_east, at_b, to_b, ratios, C, WIDTH, STRIDE, KIND, BOXES, NARROW, BLOCK)
    to_d, to_d_east = _reach(records, d, d_east, at_d, to_d, ratios, C, WIDTH, STRIDE, KIND, BOXES, NARROW, BLOCK)
    to_c, to_c_south = _reach(records, c, c_south, at_c, to_c, ratios, C, WIDTH, STRIDE, KIND, BOXES, NARROW, BLOCK)
    to_d, to_d_south = _reach(records, d, d_south, at_d, to_d, ratios, C, WIDTH, STRIDE, KIND, BOXES, NARROW, BLOCK)
    to_b, to_d = _gather(b, to_b, d, to_d)
    to_c, to_d = _gather(c, to_c, d, to_d)
    to_a, to_b = _gather(a, to_a, b, to_b)
    to_a, to_c = _gather(a, to_a, c, to_c)
    to_b_east, to_d_east = _gather(b_east, to_b_east, d_east, to_d_east)
    to_c_south, to_d_south = _gather(c_south, to_c_south, d_south, to_d_south)
    _raise(keys, a, to_a)
    _raise(keys, b, to_b)
    _raise(keys, c, to_c)
    _raise(keys, d, to_d)
    _raise(keys, b_east, to_b_east)
    _raise(keys, d_east, to_d_east)
    _raise(keys, c_south, to_c_south)
    _raise(keys, d_south, to_d_south)


@triton.jit
def _square(labels, up, new_labels, height, width, tiles, MAPPED: tl.constexpr, BLOCK: tl.constexpr):
    """The regions of a square and of the four pixels behind it, −1 outside the image.

    MAPPED: the labels are those of the level below; those of the square are written for the next level.
    """
    y, x = square_at(tiles, BLOCK)
    a, b = _pair(labels, up, new_labels, y, x, height, width, MAPPED, MAPPED, BLOCK)
    c, d = _pair(labels, up, new_labels, y + 1, x, height, width, MAPPED, MAPPED, BLOCK)
    c_south, d_south = _pair(labels, up, new_labels, y + 2, x, height, width, MAPPED, False, BLOCK)
    b_east = _region(labels, up, y * width + x + 2, (x + 2 < width) & (y < height), MAPPED)
    d_east = _region(labels, up, (y + 1) * width + x + 2, (x + 2 < width) & (y + 1 < height), MAPPED)
    return a, b, c, d, b_east, d_east, c_south, d_south


@triton.jit
def _pair(labels, up, new_labels, y, x, height, width, MAPPED: tl.constexpr, STORE: tl.constexpr,
          BLOCK: tl.constexpr):
    both = x[:, None] + tl.arange(0, 2)[None, :]
    inside = (both < width) & (y < height)[:, None]
    pixel = y[:, None] * width + both
    regions = _region(labels, up, pixel, inside, MAPPED)
    if STORE:
        tl.store(new_labels + pixel, regions, inside)
    return tl.split(regions)


@triton.jit
def _region(labels, up, pixel, inside, MAPPED: tl.constexpr):
    label = tl.load(labels + pixel, inside, -1)
    if MAPPED:
        label = tl.load(up + label, inside, -1)
    return label


@triton.jit
def _differ(u, v):
    """Whether two neighbours belong to two regions; v is outside the image where u is."""
    return (v >= 0) & (u != v)


@triton.jit
def _offers(u, v, at_u, at_v, ratios, C: tl.constexpr, KIND: tl.constexpr, BOXES: tl.constexpr, NARROW: tl.constexpr):
    """The keys that u and v get from the edge between them: w(u, v; λ) and the other end."""
    weight = products(at_u[0], at_v[0], C, KIND)
    if KIND == EUCLIDEAN:
        weight = -tl.sqrt_rn(weight)
    if KIND == VARIANCE:
        p, q = at_u[1].to(tl.float32), at_v[1].to(tl.float32)
        weight = -(tl.div_rn(p * q, tl.maximum(p + q, 1.0)) * weight)  # at least 2 but where masked
    if BOXES:
        weight = ratios[0] * density(at_u[1], at_v[1], at_u[2], at_v[2], NARROW) + ratios[1] * weight
    differ = _differ(u, v)
    return tl.where(differ, key(weight, v), NOBODY), tl.where(differ, key(weight, u), NOBODY)


@triton.jit
def _reach(records, u, v, at_u, to_u, ratios, C: tl.constexpr, WIDTH: tl.constexpr, STRIDE: tl.constexpr,
           KIND: tl.constexpr, BOXES: tl.constexpr, NARROW: tl.constexpr, BLOCK: tl.constexpr):
    """The best key of u, also over the edge out of the square, and the key of that edge's other end."""
    at_v = about(records, v, _differ(u, v), C, WIDTH, STRIDE, BOXES, BLOCK)
    more, to_v = _offers(u, v, at_u, at_v, ratios, C, KIND, BOXES, NARROW)
    return tl.maximum(to_u, more), to_v


@triton.jit
def _gather(u, to_u, v, to_v):
    """Give v's offer to u if they are one region."""
    same = u == v
    return tl.where(same, tl.maximum(to_u, to_v), to_u), tl.where(same, NOBODY, to_v)


@triton.jit
def _raise(keys, region, offer):
    """Raise a region's best key. Keys only grow, so no atomic is needed if even an outdated key wins."""
    exists = offer > NOBODY
    tl.atomic_max(keys + region, offer, exists & (tl.load(keys + region, exists, 0) < offer), sem="relaxed")


@triton.jit
def start_alone(parents, sizes, room, BLOCK: tl.constexpr):
    """Every region its own parent."""
    image = tl.program_id(1).to(tl.int64)
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(parents + image * room + v, v, v < tl.load(sizes + image).to(tl.int32))


@triton.jit
def unite_edges(labels, up, new_labels, records, parents, height, width, tiles, room, near, MAPPED: tl.constexpr,
                C: tl.constexpr, WIDTH: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Final thresholding (App. B): join the regions of every edge shorter than the root of ``near``."""
    image = tl.program_id(1).to(tl.int64)
    start = image * height * width
    a, b, c, d, b_east, d_east, c_south, d_south = _square(
        labels + start, up + image * room, new_labels + start, height, width, tiles, MAPPED, BLOCK)
    records += image * room * STRIDE
    parents += image * room
    _unite(records, parents, a, b, near, C, WIDTH, STRIDE, BLOCK)
    _unite(records, parents, a, c, near, C, WIDTH, STRIDE, BLOCK)
    _unite(records, parents, b, d, near, C, WIDTH, STRIDE, BLOCK)
    _unite(records, parents, c, d, near, C, WIDTH, STRIDE, BLOCK)
    _unite(records, parents, b, b_east, near, C, WIDTH, STRIDE, BLOCK)
    _unite(records, parents, d, d_east, near, C, WIDTH, STRIDE, BLOCK)
    _unite(records, parents, c, c_south, near, C, WIDTH, STRIDE, BLOCK)
    _unite(records, parents, d, d_south, near, C, WIDTH, STRIDE, BLOCK)


@triton.jit
def _unite(records, parents, u, v, near, C: tl.constexpr, WIDTH: tl.constexpr, STRIDE: tl.constexpr,
           BLOCK: tl.constexpr):
    """Hang the larger root on the smaller one.

    Parents only become smaller and every parent that ever was stays in the tree, so outdated ones do no harm. If
    another lane came first, the parent that it had put there is joined too.
    """
    differ = _differ(u, v)
    p, _, _ = about(records, u, differ, C, WIDTH, STRIDE, False, BLOCK)
    q, _, _ = about(records, v, differ, C, WIDTH, STRIDE, False, BLOCK)
    open = differ & (products(p, q, C, EUCLIDEAN) < near)
    while tl.max(open.to(tl.int32), 0) > 0:
        u = _top(parents, u, open)
        v = _top(parents, v, open)
        low, high = tl.minimum(u, v), tl.maximum(u, v)
        open = open & (low != high)
        before = tl.atomic_min(parents + high, low, open, sem="relaxed")
        open = open & (before != high) & (before != low)
        u, v = tl.where(open, before, u), tl.where(open, low, v)


@triton.jit
def _top(parents, v, mask):
    """The root of each vertex's tree."""
    parent = tl.load(parents + v, mask, 0)
    climbing = mask & (parent != v)
    while tl.max(climbing.to(tl.int32), 0) > 0:
        v = tl.where(climbing, parent, v)
        parent = tl.load(parents + v, climbing, 0)
        climbing = climbing & (parent != v)
    return v


@triton.jit
def shorten(parents, sizes, room, BLOCK: tl.constexpr):
    """Make every root a parent. A row of regions that were joined all at once is one long chain; all of it climbs
    together, so each step is twice as long as the one before, if it is not read from an old line of the cache.
    """
    image = tl.program_id(1).to(tl.int64)
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = v < tl.load(sizes + image).to(tl.int32)
    parents += image * room
    parent = v
    climbing = inside
    while tl.max(climbing.to(tl.int32), 0) > 0:
        above = tl.load(parents + parent, climbing, 0, cache_modifier=".cg")
        climbing = climbing & (above != parent)
        tl.store(parents + v, above, climbing)
        parent = tl.where(climbing, above, parent)


@triton.jit
def relabel(labels, up, new_labels, pixels, room, BLOCK: tl.constexpr):
    """The label of every pixel in the level above."""
    image = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(labels + image * pixels + i, i < pixels, 0)
    tl.store(new_labels + image * pixels + i, tl.load(up + image * room + label, i < pixels, 0), i < pixels)
