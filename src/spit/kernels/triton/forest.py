"""From choices to numbered trees in Triton: the connected components Ê₊ of §2.2, and the sums of their regions.

Every image has room of its own, and vertices are numbered within their image. The choices of regions are
vertices, those of pixels directions (:data:`HERE`): one byte instead of four.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.rules import FAR, ROUND
from spit.kernels.triton import fields
from spit.kernels.triton.contraction import EUCLIDEAN, about, are_apart, products, square
from spit.kernels.triton.tiles import square_at

HERE = 5
"""The direction of a pixel that stays alone. A step by (dy, dx) is 4 · (dy + 1) + dx + 1."""


def keep_heaviest(chosen: Tensor, weights: Tensor, bound: int, counts: Tensor) -> Tensor:
    """Cancel the lightest choices of each image's forest, so that it loses as many trees as one round may.

    Shape:
        chosen and weights ``(ΣV,)``, counts ``(B,)``; the choices that are left ``(ΣV,)`` int64.
    """
    chosen = chosen.long()
    vertices = torch.arange(len(chosen), device=chosen.device)
    batch = torch.arange(len(counts), device=chosen.device)
    chosen = torch.where((chosen[chosen] == vertices) & (vertices < chosen), vertices, chosen)  # one root of a pair
    images = batch.repeat_interleave(counts)
    children = vertices[chosen != vertices]
    order = children[weights[children].sort(descending=True, stable=True).indices]
    order = order[images[order].sort(stable=True).indices]  # image by image, the heaviest first
    rank = torch.arange(len(order), device=chosen.device) - torch.searchsorted(images[order], batch)[images[order]]
    joined = torch.minimum((counts - bound).clamp_min(0),
                           torch.maximum(counts // ROUND, counts - FAR * bound).clamp_min(1))
    spared = order[rank >= joined[images[order]]]
    chosen[spared] = spared
    return chosen


@triton.jit
def _chosen(choices, v, mask, width, PIXELS: tl.constexpr):
    """The vertex that each one chose."""
    if PIXELS:
        direction = tl.load(choices + v, mask, 5).to(tl.int32)
        return v + ((direction >> 2) - 1) * width + (direction & 3) - 1
    else:
        return tl.load(choices + v, mask, 0)


@triton.jit
def _roots(choices, v, mask, width, PIXELS: tl.constexpr):
    """Follow choices to a vertex that chose itself, or to the smaller one of two that chose each other."""
    here = v
    there = _chosen(choices, v, mask, width, PIXELS)
    root = v
    searching = mask & (there != here)
    while tl.max(searching.to(tl.int32)) > 0:
        beyond = _chosen(choices, there, searching, width, PIXELS)
        root = tl.where(searching, tl.where(beyond == here, tl.minimum(here, there), there), root)
        searching = searching & (beyond != here) & (beyond != there)
        here = tl.where(searching, there, here)
        there = tl.where(searching, beyond, there)
    return root


@triton.jit
def _size(sizes, image, pixels, PIXELS: tl.constexpr):
    if PIXELS:
        return pixels
    else:
        return tl.load(sizes + image).to(tl.int32)


@triton.jit
def _is_root(choices, v, inside, width, PIXELS: tl.constexpr):
    """Whether each vertex is a root, and the one that it chose."""
    there = _chosen(choices, v, inside, width, PIXELS)
    back = _chosen(choices, there, inside, width, PIXELS)
    return inside & ((there == v) | ((back == v) & (v < there))), there


@triton.jit
def count_roots(choices, sizes, counts, room, pixels, width, PIXELS: tl.constexpr, BLOCK: tl.constexpr):
    """How many trees start in each chunk of an image."""
    image = tl.program_id(1).to(tl.int64)
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = v < _size(sizes, image, pixels, PIXELS)
    roots, _ = _is_root(choices + image * room, v, inside, width, PIXELS)
    tl.store(counts + image * tl.num_programs(0) + tl.program_id(0), tl.sum(roots.to(tl.int32), 0))


@triton.jit
def number_roots(choices, sizes, counts, numbers, totals, sums, records, new_sums, new_records, room, new_room, pixels,
                 width, WORDS: tl.constexpr, STRIDE: tl.constexpr, BOXES: tl.constexpr, PIXELS: tl.constexpr,
                 BLOCK: tl.constexpr):
    """Number the trees of each image in the order of their roots.

    Of regions, a tree begins with the sums and the box of its root; of pixels, with no sums and the box of the root
    and the pixel that it chose.
    """
    image = tl.program_id(1).to(tl.int64)
    counts += image * tl.num_programs(0)
    before = 0
    for start in range(0, tl.program_id(0), BLOCK):
        chunk = start + tl.arange(0, BLOCK)
        before += tl.sum(tl.load(counts + chunk, chunk < tl.program_id(0), 0), 0)
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.store(totals + image, (before + tl.load(counts + tl.program_id(0))).to(tl.int64))
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = v < _size(sizes, image, pixels, PIXELS)
    roots, there = _is_root(choices + image * room, v, inside, width, PIXELS)
    number = before + tl.cumsum(roots.to(tl.int32), 0) - 1
    tl.store(numbers + image * room + v, number, roots)
    below, above = image * room + v, image * new_room + number
    for w in tl.static_range(WORDS):
        start = tl.zeros((BLOCK,), tl.int64) if PIXELS else tl.load(sums + below * WORDS + w, roots, 0)
        tl.store(new_sums + above * WORDS + w, start, roots)
    if BOXES:
        if PIXELS:
            y, x = v // width, v % width
            south = there - v == width
            east = (there != v) & (there - v != width)
            box = (-y, -x, y + south.to(tl.int32), x + east.to(tl.int32))
        else:
            box = fields.read(records + STRIDE // 2, below, roots, BLOCK, 4, STRIDE)
        fields.write(new_records + STRIDE // 2, above, box, roots, BLOCK, 4, STRIDE)


@triton.jit
def sum_pixels(features, choices, numbers, labels, sums, records, height, width, tiles, room, C: tl.constexpr,
               WORDS: tl.constexpr, STRIDE: tl.constexpr, PACKED: tl.constexpr, SCALE: tl.constexpr,
               BOXES: tl.constexpr, BLOCK: tl.constexpr):
    """The region of every pixel, and the sums and boxes of regions.

    A lane has a square of four pixels and adds those of one region up before the atomics: 2.2 of 4 are left.
    """
    image = tl.program_id(1).to(tl.int64)
    pixels = height * width
    top, left = square_at(tiles, BLOCK)
    corner = tl.arange(0, 4)[None, :]
    y, x = top[:, None] + corner // 2, left[:, None] + corner % 2
    inside = (y < height) & (x < width)
    v = y * width + x
    root = _roots(choices + image * pixels, v, inside, width, True)
    region = tl.load(numbers + image * pixels + root, inside, 0)
    tl.store(labels + image * pixels + v, region, inside)
    a, b, c, d = _corners(tl.where(inside, region, -1), BLOCK)
    is_b, is_c = (b >= 0) & (b != a), (c >= 0) & (c != a) & (c != b)
    is_d = (d >= 0) & (d != a) & (d != b) & (d != c)
    sums += image * room * WORDS
    for w in tl.static_range(WORDS):
        if PACKED:
            low = _field(features, image, pixels, v, inside, 2 * w, C, SCALE)
            high = _field(features, image, pixels, v, inside, 2 * w + 1, C, SCALE)
            of_a, of_b, of_c, of_d = _corners(low | (high << 16), BLOCK)  # four of at most 2 · SCALE fit 16 bits
        else:
            of_a, of_b, of_c, of_d = _corners(_field(features, image, pixels, v, inside, w, C, 0), BLOCK)
        to_a = of_a + tl.where(b == a, of_b, 0) + tl.where(c == a, of_c, 0) + tl.where(d == a, of_d, 0)
        to_b = of_b + tl.where(c == b, of_c, 0) + tl.where(d == b, of_d, 0)
        to_c = of_c + tl.where(d == c, of_d, 0)
        _add(sums, a, w, to_a, a >= 0, WORDS, PACKED)
        _add(sums, b, w, to_b, is_b, WORDS, PACKED)
        _add(sums, c, w, to_c, is_c, WORDS, PACKED)
        _add(sums, d, w, of_d, is_d, WORDS, PACKED)
    if BOXES:
        boxes = records + image * room * STRIDE + STRIDE // 2
        y, _, _, _ = _corners(y, BLOCK)
        x, _, _, _ = _corners(x, BLOCK)
        _widen(boxes, a, (-y, -x, y + ((c == a) | (d == a)).to(tl.int32), x + ((b == a) | (d == a)).to(tl.int32)),
               a >= 0, BLOCK, STRIDE)
        _widen(boxes, b, (-y, -x - (c != b).to(tl.int32), y + ((c == b) | (d == b)).to(tl.int32), x + 1), is_b, BLOCK,
               STRIDE)
        _widen(boxes, c, (-y - 1, -x, y + 1, x + (d == c).to(tl.int32)), is_c, BLOCK, STRIDE)
        _widen(boxes, d, (-y - 1, -x - 1, y + 1, x + 1), is_d, BLOCK, STRIDE)


@triton.jit
def _corners(squares, BLOCK: tl.constexpr):
    """The four columns of ``(BLOCK, 4)``."""
    even, odd = tl.split(tl.reshape(squares, (BLOCK, 2, 2)))
    a, c = tl.split(even)
    b, d = tl.split(odd)
    return a, b, c, d


@triton.jit
def _field(features, image, pixels, v, inside, k: tl.constexpr, C: tl.constexpr, SHIFT: tl.constexpr):
    """What a pixel adds to field k: a feature plus the shift, which makes it positive; 1 for the size; else 0."""
    if k < C:
        value = tl.load(features + (image * C + k) * pixels + v, inside, 0).to(tl.int32)
        return tl.where(inside, value + SHIFT, 0)
    else:
        return tl.where(inside, 1 if k == C else 0, 0)


@triton.jit
def _add(sums, region, w: tl.constexpr, value, mask, WORDS: tl.constexpr, PACKED: tl.constexpr):
    value = value.to(tl.int64)
    if PACKED:
        value = (value & 0xFFFF) | (value >> 16 << 32)
    tl.atomic_add(sums + region.to(tl.int64) * WORDS + w, value, mask, sem="relaxed")


@triton.jit
def _widen(boxes, region, box, mask, N: tl.constexpr, STRIDE: tl.constexpr):
    """Raise the four bounds of boxes. They only rise, so no atomic is needed if even an outdated one holds."""
    old = fields.read(boxes, region, mask, N, 4, STRIDE)
    for side in tl.static_range(4):
        bound = box[side] + 0  # Triton's interpreter takes a field of a record for all of it
        tl.atomic_max(boxes + region.to(tl.int64) * STRIDE + side, bound, mask & (old[side] < bound), sem="relaxed")


@triton.jit
def sum_regions(chosen, sizes, numbers, sums, records, parents, new_sums, new_records, room, WORDS: tl.constexpr,
                STRIDE: tl.constexpr, BOXES: tl.constexpr, BLOCK: tl.constexpr):
    """The region above of every region, and the sums and boxes of those, which begin with their roots'."""
    image = tl.program_id(1).to(tl.int64)
    count = tl.load(sizes + image).to(tl.int32)
    first = image * room
    for start in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        v = start + tl.arange(0, BLOCK)
        inside = v < count
        root = _roots(chosen + first, v, inside, 0, False)
        region = tl.load(numbers + first + root, inside, 0)
        tl.store(parents + first + v, region, inside)
        joins = inside & (root != v)
        below, above = first + v, first + region
        for w in tl.static_range(WORDS):
            tl.atomic_add(new_sums + above * WORDS + w, tl.load(sums + below * WORDS + w, joins, 0), joins,
                          sem="relaxed")
        if BOXES:
            box = fields.read(records + STRIDE // 2, below, joins, BLOCK, 4, STRIDE)
            _widen(new_records + STRIDE // 2, above, box, joins, BLOCK, STRIDE)


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
    image, a, b, c, d, b_east, d_east, c_south, d_south = square(
        labels, up, new_labels, height, width, tiles, room, MAPPED, BLOCK)
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
    differ = are_apart(u, v)
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
