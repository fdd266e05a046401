"""One level of contraction (§2.2) in Triton: points, weights, choices and sums, on the regions of a whole batch.

``superpixels.py`` launches these kernels. Grids are (chunks, images); a program whose chunk lies behind the
last region of its image has all lanes masked.
"""

import triton
import triton.language as tl

from spit.kernels import rules

COSINE = tl.constexpr(rules.COSINE)
VARIANCE = tl.constexpr(rules.VARIANCE)


@triton.jit
def pixel_points(features, points, pixels, SCALE: tl.constexpr, C: tl.constexpr, KIND: tl.constexpr,
                 BLOCK: tl.constexpr):
    start = tl.program_id(1).to(tl.int64) * C * pixels
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    length = tl.full((BLOCK,), SCALE, tl.float32)
    if KIND == COSINE:
        first = tl.load(features + start + i, inside, 0).to(tl.float32)
        square = first * first
        for c in tl.static_range(1, C):
            value = tl.load(features + start + c * pixels + i, inside, 0).to(tl.float32)
            square = square + value * value
        length = tl.sqrt_rn(square)
        length = tl.where(length == 0, 1.0, length)
    for c in tl.static_range(C):
        value = tl.load(features + start + c * pixels + i, inside, 0).to(tl.float32)
        tl.store(points + start + c * pixels + i, tl.div_rn(value, length), inside)


@triton.jit
def link_pixels(points, chosen, height, width, C: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    pixels = height * width
    plane = points + image * C * pixels
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = i // width
    x = i % width
    inside = i < pixels
    to = i
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    best, to = _offer_pixel(plane, pixels, i, i - width, inside & (y > 0), best, to, C, KIND)
    best, to = _offer_pixel(plane, pixels, i, i - 1, inside & (x > 0), best, to, C, KIND)
    best, to = _offer_pixel(plane, pixels, i, i + 1, inside & (x + 1 < width), best, to, C, KIND)
    best, to = _offer_pixel(plane, pixels, i, i + width, inside & (y + 1 < height), best, to, C, KIND)
    first = (image * pixels).to(tl.int32)
    tl.store(chosen + first + i, first + to, inside)


@triton.jit
def _offer_pixel(plane, pixels, here, there, exists, best, to, C: tl.constexpr, KIND: tl.constexpr):
    weight = similarity(plane + here, plane + there, pixels, exists, C, KIND)
    if KIND == VARIANCE:
        weight = 0.5 * weight
    better = exists & (weight > best)
    return tl.where(better, weight, best), tl.where(better, there, to)


@triton.jit
def similarity(a, b, stride, mask, C: tl.constexpr, KIND: tl.constexpr):
    """sim of two points whose coordinates lie ``stride`` apart; the caller scales that of the variance."""
    p = tl.load(a, mask, 0.0)
    q = tl.load(b, mask, 0.0)
    total = p * q if KIND == COSINE else (p - q) * (p - q)
    for c in tl.static_range(1, C):
        p = tl.load(a + c * stride, mask, 0.0)
        q = tl.load(b + c * stride, mask, 0.0)
        total = total + (p * q if KIND == COSINE else (p - q) * (p - q))
    if KIND == COSINE:
        return total
    return -total if KIND == VARIANCE else -tl.sqrt_rn(total)


@triton.jit
def sum_pixels(features, roots, numbers, above, parents, sums, boxes, pixels, width,
                C: tl.constexpr, WORDS: tl.constexpr, PACKED: tl.constexpr, SCALE: tl.constexpr,
                BOXES: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    region = tl.load(numbers + tl.load(roots + image * pixels + i, inside, 0), inside, 0)
    tl.store(parents + image * pixels + i, region - tl.load(above + image).to(tl.int32), inside)
    plane = features + image * C * pixels + i
    word = sums + region.to(tl.int64) * WORDS
    for w in tl.static_range(WORDS):
        if PACKED:
            low = _field(plane, pixels, inside, 2 * w, C, SCALE)
            high = _field(plane, pixels, inside, 2 * w + 1, C, SCALE)
            tl.atomic_add(word + w, low + (high << 32), inside, sem="relaxed")
        else:
            tl.atomic_add(word + w, _field(plane, pixels, inside, w, C, 0), inside, sem="relaxed")
    if BOXES:
        box = boxes + region.to(tl.int64) * 4
        tl.atomic_min(box, i // width, inside, sem="relaxed")
        tl.atomic_min(box + 1, i % width, inside, sem="relaxed")
        tl.atomic_max(box + 2, i // width, inside, sem="relaxed")
        tl.atomic_max(box + 3, i % width, inside, sem="relaxed")


@triton.jit
def _field(plane, pixels, inside, k: tl.constexpr, C: tl.constexpr, SHIFT: tl.constexpr):
    """What one pixel adds to field k: a feature plus the shift, which makes it positive; 1 for the size; else 0."""
    if k < C:
        return tl.load(plane + k * pixels, inside, 0).to(tl.int64) + SHIFT
    return tl.full(inside.shape, 1 if k == C else 0, tl.int64)


@triton.jit
def sum_regions(sums, boxes, roots, numbers, below, above, parents, up, new_sums, new_boxes,
                 WORDS: tl.constexpr, BOXES: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1)
    v = tl.load(below + image) + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = v < tl.load(below + image + 1)
    region = tl.load(numbers + tl.load(roots + v, inside, 0), inside, 0)
    tl.store(up + v, region, inside)
    tl.store(parents + v, region - tl.load(above + image).to(tl.int32), inside)
    for w in tl.static_range(WORDS):
        tl.atomic_add(new_sums + region.to(tl.int64) * WORDS + w, tl.load(sums + v * WORDS + w, inside, 0), inside,
                      sem="relaxed")
    if BOXES:
        box = new_boxes + region.to(tl.int64) * 4
        tl.atomic_min(box, tl.load(boxes + v * 4, inside, 0), inside, sem="relaxed")
        tl.atomic_min(box + 1, tl.load(boxes + v * 4 + 1, inside, 0), inside, sem="relaxed")
        tl.atomic_max(box + 2, tl.load(boxes + v * 4 + 2, inside, 0), inside, sem="relaxed")
        tl.atomic_max(box + 3, tl.load(boxes + v * 4 + 3, inside, 0), inside, sem="relaxed")


@triton.jit
def _sum_of(word, mask, k: tl.constexpr, PACKED: tl.constexpr):
    """Field k of a region's sums."""
    if PACKED:
        both = tl.load(word + k // 2, mask, 0)
        return (both >> 32) if k % 2 == 1 else (both & 0xFFFFFFFF)
    return tl.load(word + k, mask, 0)


@triton.jit
def region_points(sums, offsets, points, sizes, keys, squares, C: tl.constexpr, WORDS: tl.constexpr,
                   PACKED: tl.constexpr, SCALE: tl.constexpr, KIND: tl.constexpr, BOXES: tl.constexpr,
                   BLOCK: tl.constexpr):
    image = tl.program_id(1)
    v = tl.load(offsets + image) + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = v < tl.load(offsets + image + 1)
    word = sums + v * WORDS
    size = tl.where(inside, _sum_of(word, inside, C, PACKED), 1)
    shift = size * SCALE if PACKED else size * 0
    length = (size * SCALE).to(tl.float32)
    if KIND == COSINE:
        first = (_sum_of(word, inside, 0, PACKED) - shift).to(tl.float32)
        square = first * first
        for c in tl.static_range(1, C):
            value = (_sum_of(word, inside, c, PACKED) - shift).to(tl.float32)
            square = square + value * value
        length = tl.sqrt_rn(square)
        length = tl.where(length == 0, 1.0, length)
    for c in tl.static_range(C):
        value = (_sum_of(word, inside, c, PACKED) - shift).to(tl.float32)
        tl.store(points + v * C + c, tl.div_rn(value, length), inside)
    tl.store(sizes + v, size.to(tl.int32), inside)
    tl.store(keys + v, tl.full((BLOCK,), -(2**63), tl.int64), inside)
    total = tl.sum(tl.where(inside, size * size, 0), 0)
    if total > 0:
        tl.atomic_add(squares + image, total, sem="relaxed")


@triton.jit
def density(u, v, sizes, boxes, mask):
    """δ_∞; a region with itself is counted once."""
    top = tl.minimum(tl.load(boxes + u * 4, mask, 0), tl.load(boxes + v * 4, mask, 0))
    left = tl.minimum(tl.load(boxes + u * 4 + 1, mask, 0), tl.load(boxes + v * 4 + 1, mask, 0))
    bottom = tl.maximum(tl.load(boxes + u * 4 + 2, mask, 0), tl.load(boxes + v * 4 + 2, mask, 0))
    right = tl.maximum(tl.load(boxes + u * 4 + 3, mask, 0), tl.load(boxes + v * 4 + 3, mask, 0))
    perimeter = 2 * (bottom - top + 1 + right - left + 1)
    size = tl.load(sizes + u, mask, 1) + tl.where(u == v, 0, tl.load(sizes + v, mask, 0))
    return tl.div_rn((4 * size.to(tl.int64)).to(tl.float32), (perimeter.to(tl.int64) * perimeter).to(tl.float32))


@triton.jit
def _key(weight, neighbor):
    """Weight first, then the smaller neighbour: the maximum of these numbers is the reference's choice."""
    bits = (weight + 0.0).to(tl.int32, bitcast=True)  # −0 becomes 0
    order = tl.where(bits >= 0, bits, bits ^ 0x7FFFFFFF).to(tl.int64)
    return (order << 32) + (0x7FFFFFFF - neighbor.to(tl.int64))


@triton.jit
def _weight(u, v, exists, points, sizes, boxes, ratio_density, ratio_similarity, C: tl.constexpr,
            KIND: tl.constexpr, BOXES: tl.constexpr):
    """w(u, v; λ) of the edge between two regions."""
    weight = similarity(points + u * C, points + v * C, 1, exists, C, KIND)
    if KIND == VARIANCE:
        a = tl.load(sizes + u, exists, 1).to(tl.float32)
        b = tl.load(sizes + v, exists, 1).to(tl.float32)
        weight = tl.div_rn(a * b, a + b) * weight
    if BOXES:
        weight = ratio_density * density(u, v, sizes, boxes, exists) + ratio_similarity * weight
    return weight


@triton.jit
def _offer(keys, region, key, exists):
    """Raise a region's best key. Keys only grow, so no atomic is needed if even an outdated key wins."""
    tl.atomic_max(keys + region, key, exists & (tl.load(keys + region, exists, 0) < key), sem="relaxed")


@triton.jit
def _emit(out, count, capacity, u, v, exists):
    """Append edges to a list, in any order."""
    kept = exists.to(tl.int32)
    total = tl.sum(kept, 0)
    if total > 0:
        place = tl.atomic_add(count, total.to(tl.int64), sem="relaxed") + tl.cumsum(kept, 0) - kept
        tl.store(out + place, u.to(tl.int32), exists)
        tl.store(out + capacity + place, v.to(tl.int32), exists)


@triton.jit
def walk_pixels(labels, offsets, up, points, sizes, boxes, keys, out, count, height, width, capacity,
                 ratio_density, ratio_similarity, MAPPED: tl.constexpr, EMIT: tl.constexpr, WEIGH: tl.constexpr,
                 C: tl.constexpr, KIND: tl.constexpr, BOXES: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    plane = labels + image * height * width
    start = tl.load(offsets + image)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < height * width
    u = _region_at(plane, start, up, i, inside, MAPPED)
    has_east = inside & (i % width + 1 < width)
    east = _region_at(plane, start, up, i + 1, has_east, MAPPED)
    has_east = has_east & (u != east)
    has_south = inside & (i + width < height * width)
    south = _region_at(plane, start, up, i + width, has_south, MAPPED)
    has_south = has_south & (u != south)
    if WEIGH:
        weight = _weight(u, east, has_east, points, sizes, boxes, ratio_density, ratio_similarity, C, KIND, BOXES)
        _offer(keys, east, _key(weight, u), has_east)
        best = tl.where(has_east, _key(weight, east), -(2**63))
        weight = _weight(u, south, has_south, points, sizes, boxes, ratio_density, ratio_similarity, C, KIND, BOXES)
        _offer(keys, south, _key(weight, u), has_south)
        best = tl.maximum(best, tl.where(has_south, _key(weight, south), -(2**63)))
        _offer(keys, u, best, has_east | has_south)
    if EMIT:
        _emit(out, count, capacity, u, east, has_east)
        _emit(out, count, capacity, u, south, has_south)


@triton.jit
def _region_at(plane, start, up, i, mask, MAPPED: tl.constexpr):
    region = tl.load(plane + i, mask, 0) + start
    if MAPPED:
        region = tl.load(up + region, mask, 0).to(tl.int64)
    return region


@triton.jit
def walk_list(edges, length, up, points, sizes, boxes, keys, out, count, capacity, ratio_density, ratio_similarity,
               EMIT: tl.constexpr, WEIGH: tl.constexpr, C: tl.constexpr, KIND: tl.constexpr, BOXES: tl.constexpr,
               BLOCK: tl.constexpr):
    total = tl.load(length)
    for start in range(tl.program_id(0) * BLOCK, total, tl.num_programs(0) * BLOCK):
        e = start + tl.arange(0, BLOCK)
        inside = e < total
        u = tl.load(up + tl.load(edges + e, inside, 0), inside, 0).to(tl.int64)
        v = tl.load(up + tl.load(edges + capacity + e, inside, 0), inside, 0).to(tl.int64)
        exists = inside & (u != v)
        if WEIGH:
            weight = _weight(u, v, exists, points, sizes, boxes, ratio_density, ratio_similarity, C, KIND, BOXES)
            _offer(keys, u, _key(weight, v), exists)
            _offer(keys, v, _key(weight, u), exists)
        if EMIT:
            _emit(out, count, capacity, u, v, exists)


@triton.jit
def loop_weights(sizes, squares, count, pixels, LOOP_MEAN: tl.constexpr, CLIP: tl.constexpr):
    """w(u, u): (size − mean) / std of the sizes in an image, clipped."""
    mean = pixels / count.to(tl.float64)
    variance = squares.to(tl.float64) / count.to(tl.float64) - mean * mean
    deviation = tl.sqrt(tl.where(variance > 0, variance, 1.0))
    weights = (sizes.to(tl.float64) - LOOP_MEAN * mean) / deviation
    weights = tl.minimum(tl.maximum(weights, -CLIP), CLIP)
    return tl.where(variance > 0, weights, 0.0).to(tl.float32)


@triton.jit
def choose(keys, sizes, boxes, offsets, squares, chosen, weights, pixels, ratio_density, ratio_similarity,
            LOOPS: tl.constexpr, LOOP_MEAN: tl.constexpr, LOOP_CLIP: tl.constexpr, BOXES: tl.constexpr,
            BLOCK: tl.constexpr):
    image = tl.program_id(1)
    first = tl.load(offsets + image)
    last = tl.load(offsets + image + 1)
    v = first + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = v < last
    key = tl.load(keys + v, inside, 0)
    if LOOPS:
        weight = loop_weights(tl.load(sizes + v, inside, 1), tl.load(squares + image), last - first, pixels,
                              LOOP_MEAN, LOOP_CLIP)
        if BOXES:
            weight = ratio_density * density(v, v, sizes, boxes, inside) + ratio_similarity * weight
        key = tl.maximum(key, _key(weight, v))
    alone = key == -(2**63)
    order = (key >> 32).to(tl.int32)
    to = (0x7FFFFFFF - (key & 0xFFFFFFFF)).to(tl.int32)
    tl.store(chosen + v, tl.where(alone, v.to(tl.int32), to), inside)
    bits = tl.where(order >= 0, order, order ^ 0x7FFFFFFF)
    tl.store(weights + v, bits.to(tl.float32, bitcast=True), inside)
