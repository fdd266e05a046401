"""Which neighbour a pixel or a region chooses, in Triton (§2.2): the weights of ``reference/contraction.py``.

Of a region there is a record of 32-bit numbers: the bits of what is compared, its size, zeros up to a power of two;
with compactness, in the second half, its box (−y₀, −x₀, y₁, x₁) with inclusive ends, so that bounds only rise.

There is no list of the edges between regions: they are found among the pixels. A lane has a square of four pixels
a b / c d with the next pixels to the east and to the south, so eight pairs of neighbours. Regions that occur more than
once in a square get one offer, the best: half of all atomics.
"""

import triton
import triton.language as tl

from spit.kernels import rules
from spit.kernels.triton import fields
from spit.kernels.triton.tiles import east, square_at, strip_at, west

COSINE = tl.constexpr(rules.COSINE)
EUCLIDEAN = tl.constexpr(rules.EUCLIDEAN)
VARIANCE = tl.constexpr(rules.VARIANCE)
NOBODY = tl.constexpr(-(2**63))
"""The key of a region without edges, below all others."""


@triton.jit
def link_pixels(features, directions, height, width, strips, SCALE: tl.constexpr, C: tl.constexpr,
                KIND: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr):
    """Level 0: the direction of the best of four neighbours, the first of those in the order of pixels."""
    x, own, top, bottom = strip_at(height, width, strips, 1, COLUMNS, ROWS, LANES)
    image = tl.program_id(1).to(tl.int64)
    features += image * C * height * width
    directions += image * height * width
    nothing = tl.full((LANES, COLUMNS), float("-inf"), tl.float32)
    above = _pixels(features, top - 1, x, height, width, C)
    here = _points(_pixels(features, top, x, height, width, C), SCALE, C, KIND)
    ahead = _pixels(features, top + 1, x, height, width, C)
    north = tl.where(top > 0, _similarity(_points(above, SCALE, C, KIND), here, C, KIND), nothing)
    for y in range(top, bottom):
        below = _points(ahead, SCALE, C, KIND)
        ahead = _pixels(features, y + 2, x, height, width, C)
        south = tl.where(y + 1 < height, _similarity(here, below, C, KIND), nothing)
        beside = tl.tuple([])
        for c in tl.static_range(C):
            beside += (east(here[c], LANES, COLUMNS),)
        after = tl.where(x + 1 < width, _similarity(here, beside, C, KIND), nothing)
        before = tl.where(x > 0, west(after, LANES, COLUMNS), nothing)
        best = north
        direction = tl.where(north > nothing, 1, 5)  # of forest.HERE
        direction = tl.where(before > best, 4, direction)
        best = tl.maximum(best, before)
        direction = tl.where(after > best, 6, direction)
        best = tl.maximum(best, after)
        direction = tl.where(south > best, 9, direction)
        tl.store(directions + y * width + x, direction.to(tl.int8), own)
        here = below
        north = south


@triton.jit
def _pixels(features, y, x, height, width, C: tl.constexpr):
    """A row of all channels; 0 outside."""
    inside = (x < width) & (y >= 0) & (y < height)
    row = tl.tuple([])
    for c in tl.static_range(C):
        row += (tl.load(features + c * height * width + y * width + x, inside, 0),)
    return row


@triton.jit
def _points(row, SCALE: tl.constexpr, C: tl.constexpr, KIND: tl.constexpr):
    first = row[0].to(tl.float32)
    length = tl.full(first.shape, SCALE, tl.float32)
    if KIND == COSINE:
        square = first * first
        for c in tl.static_range(1, C):
            value = row[c].to(tl.float32)
            square = square + value * value
        length = tl.sqrt_rn(square)
        length = tl.where(length == 0, 1.0, length)
    points = tl.tuple([])
    for c in tl.static_range(C):
        points += (tl.div_rn(row[c].to(tl.float32), length),)
    return points


@triton.jit
def _similarity(p, q, C: tl.constexpr, KIND: tl.constexpr):
    total = products(p, q, C, KIND)
    if KIND == COSINE:
        return total
    return -(0.5 * total) if KIND == VARIANCE else -tl.sqrt_rn(total)


@triton.jit
def products(p, q, C: tl.constexpr, KIND: tl.constexpr):
    """p · q for the cosine, else ‖p − q‖², from left to right."""
    total = p[0] * q[0] if KIND == COSINE else (p[0] - q[0]) * (p[0] - q[0])
    for c in tl.static_range(1, C):
        total = total + (p[c] * q[c] if KIND == COSINE else (p[c] - q[c]) * (p[c] - q[c]))
    return total


@triton.jit
def region_points(sums, sizes, records, keys, squares, room, C: tl.constexpr, WORDS: tl.constexpr, WIDTH: tl.constexpr,
                  STRIDE: tl.constexpr, PACKED: tl.constexpr, SCALE: tl.constexpr, KIND: tl.constexpr,
                  BLOCK: tl.constexpr):
    """The points of regions; their best keys before any edge; the sum of squared sizes in each image."""
    image = tl.program_id(1).to(tl.int64)
    count = tl.load(sizes + image).to(tl.int32)
    total = tl.zeros((BLOCK,), tl.int64)
    for start in range(tl.program_id(0) * BLOCK, count, tl.num_programs(0) * BLOCK):
        v = start + tl.arange(0, BLOCK)
        inside = v < count
        word = sums + (image * room + v) * WORDS
        size = tl.where(inside, _sum_of(word, inside, C, PACKED), 1)
        shift = size * SCALE if PACKED else size * 0
        values = tl.tuple([])
        for c in tl.static_range(C):
            values += ((_sum_of(word, inside, c, PACKED) - shift).to(tl.float32),)
        length = (size * SCALE).to(tl.float32)
        if KIND == COSINE:
            square = values[0] * values[0]
            for c in tl.static_range(1, C):
                square = square + values[c] * values[c]
            length = tl.sqrt_rn(square)
            length = tl.where(length == 0, 1.0, length)
        record = tl.tuple([])
        for c in tl.static_range(C):
            record += (tl.div_rn(values[c], length).to(tl.int32, bitcast=True),)
        record += (size.to(tl.int32),)
        for _ in tl.static_range(WIDTH - C - 1):
            record += (tl.zeros((BLOCK,), tl.int32),)
        fields.write(records, image * room + v, record, inside, BLOCK, WIDTH, STRIDE)
        tl.store(keys + image * room + v, tl.full((BLOCK,), NOBODY, tl.int64), inside)
        total += tl.where(inside, size * size, 0)
    added = tl.sum(total, 0)
    if added > 0:
        tl.atomic_add(squares + image, added, sem="relaxed")


@triton.jit
def about(records, region, mask, C: tl.constexpr, WIDTH: tl.constexpr, STRIDE: tl.constexpr, BOXES: tl.constexpr,
          BLOCK: tl.constexpr):
    """Point, size and box of each region."""
    record = fields.read(records, region, mask, BLOCK, WIDTH, STRIDE)
    point = tl.tuple([])
    for c in tl.static_range(C):
        point += (record[c].to(tl.float32, bitcast=True),)
    if BOXES:
        return point, record[C], fields.read(records + STRIDE // 2, region, mask, BLOCK, 4, STRIDE)
    else:
        return point, record[C], ()


@triton.jit
def _sum_of(word, mask, k: tl.constexpr, PACKED: tl.constexpr):
    """Field k of a region's sums."""
    if PACKED:
        both = tl.load(word + k // 2, mask, 0)
        return (both >> 32) if k % 2 == 1 else (both & 0xFFFFFFFF)
    return tl.load(word + k, mask, 0)


@triton.jit
def density(size_u, size_v, u, v, NARROW: tl.constexpr):
    """δ_∞ of the union of two boxes; a region with itself comes with the other's size 0.

    NARROW: no number leaves 32 bits, since four times an image's pixels and (2 · (H + W))² do not.
    """
    height = tl.maximum(u[2], v[2]) + tl.maximum(u[0], v[0]) + 1
    width = tl.maximum(u[3], v[3]) + tl.maximum(u[1], v[1]) + 1
    perimeter, size = 2 * (height + width), size_u + size_v
    if not NARROW:
        perimeter, size = perimeter.to(tl.int64), size.to(tl.int64)
    return tl.div_rn((4 * size).to(tl.float32), (perimeter * perimeter).to(tl.float32))


@triton.jit
def key(weight, neighbor):
    """Weight first, then the smaller neighbour: the largest of these numbers is the reference's choice."""
    bits = (weight + 0.0).to(tl.int32, bitcast=True)  # −0 becomes 0
    order = tl.where(bits >= 0, bits, bits ^ 0x7FFFFFFF)
    return (order.to(tl.int64) << 32) | (0x7FFFFFFF - neighbor).to(tl.int64)


@triton.jit
def weigh_edges(labels, up, new_labels, records, keys, height, width, tiles, room, ratio_density, ratio_similarity,
                MAPPED: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr, STRIDE: tl.constexpr, KIND: tl.constexpr,
                BOXES: tl.constexpr, NARROW: tl.constexpr, BLOCK: tl.constexpr):
    """Offer every edge to its two regions: raise their keys to the best."""
    image, a, b, c, d, b_east, d_east, c_south, d_south = square(
        labels, up, new_labels, height, width, tiles, room, MAPPED, BLOCK)
    records += image * room * STRIDE
    keys += image * room
    edge = (are_apart(a, b) | are_apart(a, c) | are_apart(b, d) | are_apart(c, d) | are_apart(b, b_east)
            | are_apart(d, d_east) | are_apart(c, c_south) | are_apart(d, d_south))
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
def square(labels, up, new_labels, height, width, tiles, room, MAPPED: tl.constexpr, BLOCK: tl.constexpr):
    """The image, the regions of a square and those of the four pixels behind it, −1 outside the image.

    MAPPED: the labels are those of the level below; those of the square are written for the next level.
    """
    image = tl.program_id(1).to(tl.int64)
    labels += image * height * width
    new_labels += image * height * width
    up += image * room
    y, x = square_at(tiles, BLOCK)
    a, b = _pair(labels, up, new_labels, y, x, height, width, MAPPED, MAPPED, BLOCK)
    c, d = _pair(labels, up, new_labels, y + 1, x, height, width, MAPPED, MAPPED, BLOCK)
    c_south, d_south = _pair(labels, up, new_labels, y + 2, x, height, width, MAPPED, False, BLOCK)
    b_east = _region(labels, up, y * width + x + 2, (x + 2 < width) & (y < height), MAPPED)
    d_east = _region(labels, up, (y + 1) * width + x + 2, (x + 2 < width) & (y + 1 < height), MAPPED)
    return image, a, b, c, d, b_east, d_east, c_south, d_south


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
def are_apart(u, v):
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
    differ = are_apart(u, v)
    return tl.where(differ, key(weight, v), NOBODY), tl.where(differ, key(weight, u), NOBODY)


@triton.jit
def _reach(records, u, v, at_u, to_u, ratios, C: tl.constexpr, WIDTH: tl.constexpr, STRIDE: tl.constexpr,
           KIND: tl.constexpr, BOXES: tl.constexpr, NARROW: tl.constexpr, BLOCK: tl.constexpr):
    """The best key of u, also over the edge out of the square, and the key of that edge's other end."""
    at_v = about(records, v, are_apart(u, v), C, WIDTH, STRIDE, BOXES, BLOCK)
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
def _loop_weights(sizes, squares, count, pixels, CLIP: tl.constexpr):
    """w(u, u): (size − mean) / std of the sizes in an image, clipped."""
    mean = pixels / count.to(tl.float64)
    variance = squares.to(tl.float64) / count.to(tl.float64) - mean * mean
    deviation = tl.sqrt(tl.where(variance > 0, variance, 1.0))
    weights = (sizes.to(tl.float64) - mean) / deviation
    weights = tl.minimum(tl.maximum(weights, -CLIP), CLIP)
    return tl.where(variance > 0, weights, 0.0).to(tl.float32)


@triton.jit
def choose(keys, records, sizes, squares, chosen, weights, room, pixels, ratio_density, ratio_similarity,
           LOOPS: tl.constexpr, LOOP_CLIP: tl.constexpr, C: tl.constexpr,
           STRIDE: tl.constexpr, BOXES: tl.constexpr, NARROW: tl.constexpr, BLOCK: tl.constexpr):
    """Each region's best neighbour or itself, and the weight."""
    image = tl.program_id(1).to(tl.int64)
    count = tl.load(sizes + image)
    for start in range(tl.program_id(0) * BLOCK, count.to(tl.int32), tl.num_programs(0) * BLOCK):
        v = start + tl.arange(0, BLOCK)
        inside = v < count.to(tl.int32)
        best = tl.load(keys + image * room + v, inside, 0)
        if LOOPS:
            size = tl.load(records + (image * room + v) * STRIDE + C, inside, 0)
            weight = _loop_weights(size, tl.load(squares + image), count, pixels, LOOP_CLIP)
            if BOXES:
                box = fields.read(records + STRIDE // 2, image * room + v, inside, BLOCK, 4, STRIDE)
                weight = ratio_density * density(size, 0, box, box, NARROW) + ratio_similarity * weight
            best = tl.maximum(best, key(weight, v))
        order = (best >> 32).to(tl.int32)
        to = (0x7FFFFFFF - (best & 0xFFFFFFFF)).to(tl.int32)
        tl.store(chosen + image * room + v, tl.where(best == NOBODY, v, to), inside)
        bits = tl.where(order >= 0, order, order ^ 0x7FFFFFFF)
        tl.store(weights + image * room + v, bits.to(tl.float32, bitcast=True), inside)
