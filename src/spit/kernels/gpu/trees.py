"""From choices to numbered trees in Triton: the connected components Ê₊ of §2.2, and the sums of their regions.

Every image has room of its own, and vertices are numbered within their image. The choices of regions are
vertices, those of pixels directions (:data:`HERE`): one byte instead of four.
"""

import triton
import triton.language as tl

from spit.kernels.gpu.squares import square_at

HERE = 5
"""The direction of a pixel that stays alone. A step by (dy, dx) is 4 · (dy + 1) + dx + 1."""


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
    there = _chosen(choices, v, inside, width, PIXELS)
    back = _chosen(choices, there, inside, width, PIXELS)
    return inside & ((there == v) | ((back == v) & (v < there)))


@triton.jit
def count_roots(choices, sizes, counts, room, pixels, width, PIXELS: tl.constexpr, BLOCK: tl.constexpr):
    """How many trees start in each chunk of an image."""
    image = tl.program_id(1).to(tl.int64)
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = v < _size(sizes, image, pixels, PIXELS)
    roots = _is_root(choices + image * room, v, inside, width, PIXELS)
    tl.store(counts + image * tl.num_programs(0) + tl.program_id(0), tl.sum(roots.to(tl.int32), 0))


@triton.jit
def number_roots(choices, sizes, counts, numbers, totals, sums, boxes, room, new_room, pixels, width,
                 WORDS: tl.constexpr, BOXES: tl.constexpr, PIXELS: tl.constexpr, BLOCK: tl.constexpr):
    """Number the trees of each image in the order of their roots, and empty their sums and boxes."""
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
    roots = _is_root(choices + image * room, v, inside, width, PIXELS)
    number = before + tl.cumsum(roots.to(tl.int32), 0) - 1
    tl.store(numbers + image * room + v, number, roots)
    region = image * new_room + number
    for w in tl.static_range(WORDS):
        tl.store(sums + region * WORDS + w, tl.zeros((BLOCK,), tl.int64), roots)
    if BOXES:
        for side in tl.static_range(4):
            tl.store(boxes + region * 4 + side, tl.full((BLOCK,), 2**30 if side < 2 else -1, tl.int32), roots)


@triton.jit
def sum_pixels(features, choices, numbers, labels, sums, boxes, height, width, tiles, room, C: tl.constexpr,
               WORDS: tl.constexpr, PACKED: tl.constexpr, SCALE: tl.constexpr, BOXES: tl.constexpr,
               BLOCK: tl.constexpr):
    """The region of every pixel, and the sums of regions.

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
        _add(sums, b, w, to_b, (b >= 0) & (b != a), WORDS, PACKED)
        _add(sums, c, w, to_c, (c >= 0) & (c != a) & (c != b), WORDS, PACKED)
        _add(sums, d, w, of_d, (d >= 0) & (d != a) & (d != b) & (d != c), WORDS, PACKED)
    if BOXES:
        box = boxes + (image * room + region) * 4
        _widen(box, y, x, y, x, inside)


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
def _widen(box, top, left, bottom, right, mask):
    tl.atomic_min(box, top, mask, sem="relaxed")
    tl.atomic_min(box + 1, left, mask, sem="relaxed")
    tl.atomic_max(box + 2, bottom, mask, sem="relaxed")
    tl.atomic_max(box + 3, right, mask, sem="relaxed")


@triton.jit
def sum_regions(chosen, sizes, numbers, sums, boxes, parents, new_sums, new_boxes, room, WORDS: tl.constexpr,
                BOXES: tl.constexpr, BLOCK: tl.constexpr):
    """The region above of every region, and the sums of those."""
    image = tl.program_id(1).to(tl.int64)
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = v < tl.load(sizes + image).to(tl.int32)
    root = _roots(chosen + image * room, v, inside, 0, False)
    region = tl.load(numbers + image * room + root, inside, 0)
    tl.store(parents + image * room + v, region, inside)
    below, above = image * room + v, image * room + region
    for w in tl.static_range(WORDS):
        tl.atomic_add(new_sums + above * WORDS + w, tl.load(sums + below * WORDS + w, inside, 0), inside,
                      sem="relaxed")
    if BOXES:
        _widen(new_boxes + above * 4, tl.load(boxes + below * 4, inside, 0), tl.load(boxes + below * 4 + 1, inside, 0),
               tl.load(boxes + below * 4 + 2, inside, 0), tl.load(boxes + below * 4 + 3, inside, 0), inside)
