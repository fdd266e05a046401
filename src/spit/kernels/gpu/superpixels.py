"""Superpixel contraction (§2.2) in Triton: ``reference.superpixels``, bit for bit.

No host synchronisation between levels. Regions of the batch are numbered end to end, image by image;
how many there are is known on the device alone. Arrays are as long as they could have to be, grids
cover that, and a program reads from ``offsets`` whether it has anything to do. Sums are integers, so
the order of atomics does not matter; neither does the order of an edge list, since a maximum has none.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.gpu.forest import number_roots
from spit.kernels.gpu.launch import BLOCK, EXACT, blocks
from spit.kernels.gpu.regions import compose
from spit.kernels.gpu.replay import replay
from spit.kernels.reference.superpixels import climb
from spit.kernels.rules import SCALE, Levels, Rules

PACKABLE = 2**19
"""In images of fewer pixels two sums fit one 64-bit word."""
SMALL = 2**24
"""Batches of no more features are launched as one recorded CUDA graph: there launches cost more than work."""
PROGRAMS = 2048
"""That share the walk over an edge list, whose length the host does not know."""


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """See :func:`spit.kernels.reference.superpixels`."""
    graph = _contract(features, rules)
    if rules.merge_threshold > 0:
        graph.join(graph.link_below(rules.merge_threshold))
    levels = graph.levels()
    if rules.max_tokens is not None:
        levels = _bound(graph, levels, rules.max_tokens)
    return levels


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """See :func:`spit.kernels.reference.superpixel_labels`. Nothing in it waits for the device."""
    if rules.merge_threshold > 0 or rules.max_tokens is not None:
        levels = superpixels(features, rules)
        return climb(levels, features, compose), levels[-1][1]
    if features.is_cuda and features.numel() <= SMALL:
        return replay(_last_level, features, rules)
    return _last_level(features, rules)


def _last_level(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    batch, _, height, width = features.shape
    graph = _contract(features, rules)
    return compose(graph.parents, graph.offsets).view(batch, height, width), graph.offsets[-1].diff()


def _contract(features: Tensor, rules: Rules) -> "_Graph":
    """The levels of §2.2, none of which waits for the device."""
    graph = _Graph(features.contiguous(), rules)
    graph.join(graph.link_pixels())
    for _ in range(1, rules.levels):
        graph.join(graph.link_regions(loops=rules.loop_clip is not None)[0])
    return graph


class _Graph:
    """G^(t) of every image of a batch, contracted level by level."""

    def __init__(self, features: Tensor, rules: Rules) -> None:
        self.features, self.rules = features, rules
        self.batch, self.channels, self.height, self.width = features.shape
        self.pixels = self.height * self.width
        if self.batch * self.pixels >= 2**31:
            raise ValueError(f"a batch of {self.batch} images of {self.height}×{self.width} has too many pixels for "
                             "32-bit numbers; split it")
        # A pixel that has neighbours joins one, so no later level has more than half as many regions.
        self.capacity = self.batch * (self.pixels // 2 + 1)
        self.packed = self.pixels < PACKABLE
        self.words = self.channels // 2 + 1 if self.packed else self.channels + 1
        pixels = torch.arange(self.batch + 1, device=features.device) * self.pixels
        self.offsets = [pixels]
        self.parents: list[Tensor] = []  # in the numbering of each image
        self.sums = self.boxes = self.up = pixels  # of the present level; see join
        self.edges: tuple[Tensor, Tensor] | None = None  # a list (2, E) and its length, from level 2 on
        self.options = {"C": self.channels, "COSINE": rules.similarity == "cosine", "BOXES": rules.compactness > 0,
                        "BLOCK": BLOCK, **EXACT}
        self.layout = {"WORDS": self.words, "PACKED": self.packed, "SCALE": SCALE}

    @property
    def level(self) -> int:
        return len(self.parents)

    def link_pixels(self) -> Tensor:
        """Level 0: the best of four neighbours."""
        grid = (blocks(self.pixels), self.batch)
        points = self._new(self.batch * self.channels * self.pixels, dtype=torch.float32)
        chosen = self._new(self.batch * self.pixels)
        options = {key: self.options[key] for key in ("C", "COSINE", "BLOCK")} | EXACT
        _pixel_points[grid](self.features, points, self.pixels, SCALE=SCALE, **options)
        _link_pixels[grid](points, chosen, self.height, self.width, **options)
        return chosen

    def link_regions(self, loops: bool) -> tuple[Tensor, Tensor]:
        """Ê^(t), t ≥ 1: each region's best neighbour, itself among them where there are loops; the weight."""
        offsets, rules = self.offsets[-1], self.rules
        grid = (blocks(self.pixels // 2 + 1), self.batch)
        points = self._new(self.capacity * self.channels, dtype=torch.float32)
        sizes = self._new(self.capacity)
        keys = self._new(self.capacity, dtype=torch.int64)
        squares = torch.zeros(self.batch, dtype=torch.int64, device=offsets.device)
        _region_points[grid](self.sums, offsets, points, sizes, keys, squares, **self.layout, **self.options)
        self._walk_edges((points, sizes, keys))
        ratio = (float(rules.compactness), float(1 - rules.compactness))
        chosen, weights = self._new(self.capacity), self._new(self.capacity, dtype=torch.float32)
        _choose[grid](keys, sizes, self.boxes, offsets, squares, chosen, weights, self.pixels, *ratio,
                      LOOPS=loops, LOOP_MEAN=rules.loop_mean, LOOP_CLIP=rules.loop_clip or 0.0,
                      BOXES=self.options["BOXES"], BLOCK=BLOCK, **EXACT)
        return chosen, weights

    def link_below(self, threshold: float) -> Tensor:
        """Final thresholding (App. B): each region to the smallest it is joined with."""
        edges, length = self._walk_edges()
        count, edge_count = torch.stack([self.offsets[-1][-1], length[0]]).tolist()
        sums, sizes = self._sums(count)
        means = sums.float() / (sizes * SCALE).float()[:, None]
        u, v = edges[:, :edge_count].long()
        near = torch.zeros(edge_count, device=u.device)
        for c in range(self.channels):
            gap = means[u, c] - means[v, c]
            near = near + gap * gap if c else gap * gap
        close = near < torch.tensor(threshold * threshold, dtype=torch.float32, device=u.device)
        u, v = u[close], v[close]
        smallest = torch.arange(count, device=u.device)
        while True:
            joined = smallest.scatter_reduce(0, u, smallest[v], "amin").scatter_reduce(0, v, smallest[u], "amin")
            joined = joined[joined]
            if torch.equal(joined, smallest):
                chosen = self._new(self.capacity)
                chosen[:count] = smallest.int()
                return chosen
            smallest = joined

    def join(self, chosen: Tensor) -> None:
        """π^(t) → π^(t+1): the trees of the forest become regions."""
        below = self.offsets[-1]
        longest = self.pixels if self.level == 0 else self.pixels // 2 + 1
        sums = self._new(self.capacity * self.words, dtype=torch.int64)
        roots, numbers, above = number_roots(chosen, below, longest, sums, self.words)
        boxes = self._empty_boxes()
        parents = self._new(len(chosen))
        up = parents if self.level == 0 else self._new(len(chosen))
        grid = (blocks(longest), self.batch)
        if self.level == 0:
            _sum_pixels[grid](self.features, roots, numbers, above, parents, sums, boxes, self.pixels, self.width,
                              C=self.channels, BOXES=self.options["BOXES"], BLOCK=BLOCK, **self.layout)
        else:
            _sum_regions[grid](self.sums, self.boxes, roots, numbers, below, above, parents, up, sums, boxes,
                               WORDS=self.words, BOXES=self.options["BOXES"], BLOCK=BLOCK)
        self.sums, self.boxes, self.up = sums, boxes, up
        self.parents.append(parents)
        self.offsets.append(above)

    def levels(self) -> Levels:
        """What is known so far, cut to its true length: the one synchronisation of a contraction."""
        totals = torch.stack([offsets[-1] for offsets in self.offsets]).tolist()
        return [(parents[:total], above.diff())
                for parents, total, above in zip(self.parents, totals, self.offsets[1:], strict=False)]

    def _walk_edges(self, offer: tuple[Tensor, Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Go over the edges of G^(t); keep those of level 2 and later as a list.

        At levels 1 and 2 the edges are found between neighbouring pixels; later, in the list before.

        Args:
            offer: points, sizes and keys, to offer every edge to its two ends.

        Returns:
            The list, in any order, and its length; empty where it was not kept.
        """
        nothing = self.offsets[-1]  # passed where a kernel reads nothing
        points, sizes, keys = offer or (nothing, nothing, nothing)
        ratio = (float(self.rules.compactness), float(1 - self.rules.compactness))
        options = {**self.options, "WEIGH": offer is not None}
        count = torch.zeros(1, dtype=torch.int64, device=nothing.device)
        if self.edges is None:
            keep = self.level >= 2 or offer is None
            capacity = 2 * self.batch * self.pixels
            out = self._new(2, capacity if keep else 0)
            _walk_pixels[(blocks(self.pixels), self.batch)](
                self.parents[0], self.offsets[1], self.up, points, sizes, self.boxes, keys, out, count,
                self.height, self.width, capacity, *ratio, MAPPED=self.level >= 2, EMIT=keep, **options)
        else:
            keep = True
            edges, length = self.edges
            out = torch.empty_like(edges)
            _walk_list[(PROGRAMS,)](edges, length, self.up, points, sizes, self.boxes, keys, out, count,
                                    edges.shape[1], *ratio, EMIT=True, **options)
        if keep:
            self.edges = out, count
        return out, count

    def _sums(self, count: int) -> tuple[Tensor, Tensor]:
        """Σξ and |π| of the first regions, ``(V, C)`` and ``(V,)`` int64."""
        words = self.sums.view(self.capacity, self.words)[:count]
        if not self.packed:
            return words[:, :-1], words[:, -1]
        fields = torch.stack([words & 0xFFFFFFFF, words >> 32], dim=2).flatten(1)
        sizes = fields[:, self.channels]
        return fields[:, : self.channels] - SCALE * sizes[:, None], sizes

    def _new(self, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self.features.device)

    def _empty_boxes(self) -> Tensor:
        if self.rules.compactness == 0:
            return self._new(4)
        boxes = self._new(self.capacity, 4)
        boxes[:, :2] = 2**30
        boxes[:, 2:] = -1
        return boxes


def _bound(graph: _Graph, levels: Levels, bound: int) -> Levels:
    """Join regions until at most ``bound`` are left in every image: see the reference's ``_bound``."""
    before = len(levels)
    device = graph.features.device
    counts = levels[-1][1]
    while int(counts.max()) > bound:
        chosen, weights = graph.link_regions(loops=False)
        total = int(counts.sum())
        chosen, weights = chosen[:total].long(), weights[:total]
        vertices = torch.arange(total, device=device)
        chosen = torch.where((chosen[chosen] == vertices) & (vertices < chosen), vertices, chosen)
        images = torch.arange(len(counts), device=device).repeat_interleave(counts)
        children = vertices[chosen != vertices]
        order = children[weights[children].sort(descending=True, stable=True).indices]
        order = order[images[order].sort(stable=True).indices]  # image by image, the heaviest first
        of_image = images[order]
        firsts = torch.searchsorted(of_image, torch.arange(len(counts), device=device))
        rank = torch.arange(len(order), device=device) - firsts[of_image]
        spared = order[rank >= (counts - bound).clamp_min(0)[of_image]]
        chosen[spared] = spared
        padded = graph._new(graph.capacity)
        padded[:total] = chosen.int()
        graph.join(padded)
        counts = graph.offsets[-1].diff()
    extra = graph.levels()[before:]
    if not extra:
        steps = [torch.arange(count, device=device) for count in counts.tolist()]
        return [*levels, (torch.cat(steps).int(), counts)]
    return [*levels, (compose([parents for parents, _ in extra], graph.offsets[before:]), counts)]


@triton.jit
def _pixel_points(features, points, pixels, SCALE: tl.constexpr, C: tl.constexpr, COSINE: tl.constexpr,
                  BLOCK: tl.constexpr):
    start = tl.program_id(1).to(tl.int64) * C * pixels
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    length = tl.full((BLOCK,), SCALE, tl.float32)
    if COSINE:
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
def _link_pixels(points, chosen, height, width, C: tl.constexpr, COSINE: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    pixels = height * width
    plane = points + image * C * pixels
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = i // width
    x = i % width
    inside = i < pixels
    to = i
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    best, to = _offer_pixel(plane, pixels, i, i - width, inside & (y > 0), best, to, C, COSINE)
    best, to = _offer_pixel(plane, pixels, i, i - 1, inside & (x > 0), best, to, C, COSINE)
    best, to = _offer_pixel(plane, pixels, i, i + 1, inside & (x + 1 < width), best, to, C, COSINE)
    best, to = _offer_pixel(plane, pixels, i, i + width, inside & (y + 1 < height), best, to, C, COSINE)
    first = (image * pixels).to(tl.int32)
    tl.store(chosen + first + i, first + to, inside)


@triton.jit
def _offer_pixel(plane, pixels, here, there, exists, best, to, C: tl.constexpr, COSINE: tl.constexpr):
    weight = _similarity(plane + here, plane + there, pixels, exists, C, COSINE)
    better = exists & (weight > best)
    return tl.where(better, weight, best), tl.where(better, there, to)


@triton.jit
def _similarity(a, b, stride, mask, C: tl.constexpr, COSINE: tl.constexpr):
    """sim of two points, whose coordinates lie ``stride`` apart."""
    p = tl.load(a, mask, 0.0)
    q = tl.load(b, mask, 0.0)
    total = p * q if COSINE else (p - q) * (p - q)
    for c in tl.static_range(1, C):
        p = tl.load(a + c * stride, mask, 0.0)
        q = tl.load(b + c * stride, mask, 0.0)
        total = total + (p * q if COSINE else (p - q) * (p - q))
    return total if COSINE else -tl.sqrt_rn(total)


@triton.jit
def _sum_pixels(features, roots, numbers, above, parents, sums, boxes, pixels, width,
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
    """What one pixel adds to field k: a feature, made positive by the shift; 1 for the size; else 0."""
    if k < C:
        return tl.load(plane + k * pixels, inside, 0).to(tl.int64) + SHIFT
    return tl.full(inside.shape, 1 if k == C else 0, tl.int64)


@triton.jit
def _sum_regions(sums, boxes, roots, numbers, below, above, parents, up, new_sums, new_boxes,
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
def _region_points(sums, offsets, points, sizes, keys, squares, C: tl.constexpr, WORDS: tl.constexpr,
                   PACKED: tl.constexpr, SCALE: tl.constexpr, COSINE: tl.constexpr, BOXES: tl.constexpr,
                   BLOCK: tl.constexpr):
    image = tl.program_id(1)
    v = tl.load(offsets + image) + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = v < tl.load(offsets + image + 1)
    word = sums + v * WORDS
    size = tl.where(inside, _sum_of(word, inside, C, PACKED), 1)
    shift = size * SCALE if PACKED else size * 0
    length = (size * SCALE).to(tl.float32)
    if COSINE:
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
def _density(u, v, sizes, boxes, mask):
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
    """Weight first, then the smaller neighbour: a number whose maximum is the reference's choice."""
    bits = (weight + 0.0).to(tl.int32, bitcast=True)  # −0 becomes 0
    order = tl.where(bits >= 0, bits, bits ^ 0x7FFFFFFF).to(tl.int64)
    return (order << 32) + (0x7FFFFFFF - neighbor.to(tl.int64))


@triton.jit
def _weight(u, v, exists, points, sizes, boxes, ratio_density, ratio_similarity, C: tl.constexpr,
            COSINE: tl.constexpr, BOXES: tl.constexpr):
    """w(u, v; λ) of the edge between two regions."""
    weight = _similarity(points + u * C, points + v * C, 1, exists, C, COSINE)
    if BOXES:
        weight = ratio_density * _density(u, v, sizes, boxes, exists) + ratio_similarity * weight
    return weight


@triton.jit
def _offer(keys, region, key, exists):
    """Raise a region's best key. Keys only grow: where the one read, however old, wins, no atomic is needed."""
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
def _walk_pixels(labels, offsets, up, points, sizes, boxes, keys, out, count, height, width, capacity,
                 ratio_density, ratio_similarity, MAPPED: tl.constexpr, EMIT: tl.constexpr, WEIGH: tl.constexpr,
                 C: tl.constexpr, COSINE: tl.constexpr, BOXES: tl.constexpr, BLOCK: tl.constexpr):
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
        weight = _weight(u, east, has_east, points, sizes, boxes, ratio_density, ratio_similarity, C, COSINE, BOXES)
        _offer(keys, east, _key(weight, u), has_east)
        best = tl.where(has_east, _key(weight, east), -(2**63))
        weight = _weight(u, south, has_south, points, sizes, boxes, ratio_density, ratio_similarity, C, COSINE, BOXES)
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
def _walk_list(edges, length, up, points, sizes, boxes, keys, out, count, capacity, ratio_density, ratio_similarity,
               EMIT: tl.constexpr, WEIGH: tl.constexpr, C: tl.constexpr, COSINE: tl.constexpr, BOXES: tl.constexpr,
               BLOCK: tl.constexpr):
    total = tl.load(length)
    for start in range(tl.program_id(0) * BLOCK, total, tl.num_programs(0) * BLOCK):
        e = start + tl.arange(0, BLOCK)
        inside = e < total
        u = tl.load(up + tl.load(edges + e, inside, 0), inside, 0).to(tl.int64)
        v = tl.load(up + tl.load(edges + capacity + e, inside, 0), inside, 0).to(tl.int64)
        exists = inside & (u != v)
        if WEIGH:
            weight = _weight(u, v, exists, points, sizes, boxes, ratio_density, ratio_similarity, C, COSINE, BOXES)
            _offer(keys, u, _key(weight, v), exists)
            _offer(keys, v, _key(weight, u), exists)
        if EMIT:
            _emit(out, count, capacity, u, v, exists)


@triton.jit
def _choose(keys, sizes, boxes, offsets, squares, chosen, weights, pixels, ratio_density, ratio_similarity,
            LOOPS: tl.constexpr, LOOP_MEAN: tl.constexpr, LOOP_CLIP: tl.constexpr, BOXES: tl.constexpr,
            BLOCK: tl.constexpr):
    image = tl.program_id(1)
    first = tl.load(offsets + image)
    last = tl.load(offsets + image + 1)
    v = first + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = v < last
    key = tl.load(keys + v, inside, 0)
    if LOOPS:
        count = (last - first).to(tl.float64)
        mean = pixels / count
        variance = tl.load(squares + image).to(tl.float64) / count - mean * mean
        deviation = tl.sqrt(tl.where(variance > 0, variance, 1.0))
        loop = (tl.load(sizes + v, inside, 1).to(tl.float64) - LOOP_MEAN * mean) / deviation
        loop = tl.minimum(tl.maximum(loop, -LOOP_CLIP), LOOP_CLIP)
        weight = tl.where(variance > 0, loop, 0.0).to(tl.float32)
        if BOXES:
            weight = ratio_density * _density(v, v, sizes, boxes, inside) + ratio_similarity * weight
        key = tl.maximum(key, _key(weight, v))
    alone = key == -(2**63)
    order = (key >> 32).to(tl.int32)
    to = (0x7FFFFFFF - (key & 0xFFFFFFFF)).to(tl.int32)
    tl.store(chosen + v, tl.where(alone, v.to(tl.int32), to), inside)
    bits = tl.where(order >= 0, order, order ^ 0x7FFFFFFF)
    tl.store(weights + v, bits.to(tl.float32, bitcast=True), inside)
