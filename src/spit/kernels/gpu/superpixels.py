"""Superpixel contraction (§2.2) in Triton: ``reference.superpixels``, bit for bit.

``graph.py`` contracts. The class below is the former one, kept for comparison while ``launch.FUSED`` exists. Neither
waits for the device between levels.
"""

import torch
from torch import Tensor

from spit.kernels.gpu import contraction, forest, launch
from spit.kernels.gpu.graph import Graph
from spit.kernels.gpu.launch import BLOCK, EXACT, blocks
from spit.kernels.gpu.regions import compose
from spit.kernels.gpu.replay import replay
from spit.kernels.reference.contraction import region_points as means_of
from spit.kernels.reference.forest import keep_heaviest, merge_below
from spit.kernels.reference.superpixels import contract_levels, flatten
from spit.kernels.rules import EUCLIDEAN, SCALE, Levels, Rules
from spit.tokens import offsets_of

PACKABLE = 2**19
"""In images with fewer pixels, two sums fit one 64-bit word."""
PROGRAMS = 2048
"""Programs that share the walk over an edge list, whose length the host does not know."""


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """See :func:`spit.kernels.reference.superpixels`."""
    if launch.FUSED:
        graph = Graph(features.contiguous(), rules)
        contract_levels(graph)
        return graph.levels() if rules.max_tokens is None else _bounded(graph, rules.max_tokens)
    old = _Graph(features.contiguous(), rules)
    contract_levels(old)
    return old.levels() if rules.max_tokens is None else _bound(old, old.levels(), rules.max_tokens)


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """See :func:`spit.kernels.reference.superpixel_labels`.

    Nothing waits for the device, except the bound, which counts what is left.
    """
    if rules.max_tokens is not None or (rules.merge_threshold > 0 and not launch.FUSED):
        levels = superpixels(features, rules)
        return flatten(levels, features, compose), levels[-1][1]
    labels, counts = replay(_last_level if launch.FUSED else _last_level_in_steps, (features,), rules)
    return labels, counts


def _last_level(tensors: tuple[Tensor, ...], rules: Rules) -> tuple[Tensor, ...]:
    graph = Graph(tensors[0].contiguous(), rules)
    contract_levels(graph)
    return graph.final_labels(), graph.counts[-1]


def _bounded(graph: Graph, bound: int) -> Levels:
    """Join regions until at most ``bound`` are left in every image: see ``reference.superpixels``."""
    levels, counts = graph.levels(), graph.counts[-1]
    while int(counts.max()) > bound:
        chosen, weights = graph.link_regions(None)
        filled = graph.filled(counts)
        first = (counts.cumsum(0) - counts)[:, None]  # keep_heaviest numbers regions image after image
        kept = keep_heaviest((chosen + first)[filled], weights[filled], bound, counts)
        chosen[filled] = (kept - first.expand_as(filled)[filled]).int()
        graph.contract(chosen)
        counts = graph.counts[-1]
    steps = graph.levels()[len(levels):]
    if not steps:
        places = torch.arange(graph.room, device=counts.device, dtype=torch.int32).expand(len(counts), -1)
        return [*levels, (places[graph.filled(counts)], counts)]
    below = [offsets_of(counts) for _, counts in (levels[-1], *steps)]
    return [*levels, (compose([parents for parents, _ in steps], below), counts)]


def _last_level_in_steps(tensors: tuple[Tensor, ...], rules: Rules) -> tuple[Tensor, ...]:
    (features,) = tensors
    batch, _, height, width = features.shape
    graph = _Graph(features.contiguous(), rules)
    contract_levels(graph)
    return compose(graph.parents, graph.offsets).view(batch, height, width), graph.offsets[-1].diff()


class _Graph:
    """G^(t) of every image of a batch, contracted level by level.

    The regions of a batch are numbered consecutively, image by image, and only the device knows how many there are.
    Arrays and grids have the largest possible size, and a program reads from ``offsets`` whether it has work. Sums
    are integers, so the order of atomics does not matter; nor does the order of an edge list, since only maxima are
    taken of it.
    """

    def __init__(self, features: Tensor, rules: Rules) -> None:
        self.features, self.rules = features, rules
        self.batch, self.channels, self.height, self.width = features.shape
        self.pixels = self.height * self.width
        if self.batch * self.pixels >= 2**31:
            raise ValueError(f"a batch of {self.batch} images of {self.height}×{self.width} has too many pixels for "
                             "32-bit numbers; split it")
        # Every pixel with a neighbour joins one, so later levels have at most half as many regions.
        self.capacity = self.batch * (self.pixels // 2 + 1)
        self.packed = self.pixels < PACKABLE
        self.words = self.channels // 2 + 1 if self.packed else self.channels + 1
        pixels = torch.arange(self.batch + 1, device=features.device) * self.pixels
        self.offsets = [pixels]
        self.parents: list[Tensor] = []  # in the numbering of each image
        self.sums = self.boxes = self.up = pixels  # of the present level; see contract
        self.edges: tuple[Tensor, Tensor] | None = None  # a list (2, E) and its length, from level 2 on
        self.options = {"C": self.channels, "KIND": rules.kind, "BOXES": rules.compactness > 0,
                        "BLOCK": BLOCK, **EXACT}
        self.ratio = (float(rules.compactness), float(1 - rules.compactness))  # of density and similarity
        self.layout = {"WORDS": self.words, "PACKED": self.packed, "SCALE": SCALE}

    @property
    def level(self) -> int:
        return len(self.parents)

    def link_pixels(self) -> Tensor:
        """Level 0: the best of four neighbours."""
        grid = (blocks(self.pixels), self.batch)
        points = self._new(self.batch * self.channels * self.pixels, dtype=torch.float32)
        chosen = self._new(self.batch * self.pixels)
        options = {key: self.options[key] for key in ("C", "KIND", "BLOCK")} | EXACT
        contraction.pixel_points[grid](self.features, points, self.pixels, SCALE=SCALE, **options)
        contraction.link_pixels[grid](points, chosen, self.height, self.width, **options)
        return chosen

    def link_regions(self, loop_clip: float | None) -> tuple[Tensor, Tensor]:
        """Ê^(t), t ≥ 1: each region's best neighbour, or itself if self-loops have a bound, and the weight."""
        offsets, rules = self.offsets[-1], self.rules
        grid = (blocks(self.pixels // 2 + 1), self.batch)
        points = self._new(self.capacity * self.channels, dtype=torch.float32)
        sizes = self._new(self.capacity)
        keys = self._new(self.capacity, dtype=torch.int64)
        squares = torch.zeros(self.batch, dtype=torch.int64, device=offsets.device)
        contraction.region_points[grid](self.sums, offsets, points, sizes, keys, squares, **self.layout, **self.options)
        self._walk_edges((points, sizes, keys))
        chosen, weights = self._new(self.capacity), self._new(self.capacity, dtype=torch.float32)
        contraction.choose[grid](
            keys, sizes, self.boxes, offsets, squares, chosen, weights, self.pixels, *self.ratio,
            LOOPS=loop_clip is not None, LOOP_MEAN=rules.loop_mean, LOOP_CLIP=loop_clip or 0.0,
            BOXES=self.options["BOXES"], BLOCK=BLOCK, **EXACT)
        return chosen, weights

    def merge_below(self, threshold: float) -> Tensor:
        """Final thresholding (App. B): each region to the smallest it is joined with."""
        edges, length = self._walk_edges()
        count, edge_count = torch.stack([self.offsets[-1][-1], length[0]]).tolist()
        means = means_of(*self._sums(count), EUCLIDEAN)
        return self._padded(merge_below(edges[:, :edge_count].T.long(), means, threshold))

    def contract(self, chosen: Tensor) -> None:
        """π^(t) → π^(t+1): the trees of the forest become regions."""
        below = self.offsets[-1]
        longest = self.pixels if self.level == 0 else self.pixels // 2 + 1
        sums = self._new(self.capacity * self.words, dtype=torch.int64)
        roots, numbers, above = forest.components(chosen, below, longest, sums, self.words)
        boxes = self._empty_boxes()
        parents = self._new(len(chosen))
        up = parents if self.level == 0 else self._new(len(chosen))
        grid = (blocks(longest), self.batch)
        if self.level == 0:
            contraction.sum_pixels[grid](
                self.features, roots, numbers, above, parents, sums, boxes, self.pixels, self.width, C=self.channels,
                BOXES=self.options["BOXES"], BLOCK=BLOCK, **self.layout)
        else:
            contraction.sum_regions[grid](
                self.sums, self.boxes, roots, numbers, below, above, parents, up, sums, boxes, WORDS=self.words,
                BOXES=self.options["BOXES"], BLOCK=BLOCK)
        self.sums, self.boxes, self.up = sums, boxes, up
        self.parents.append(parents)
        self.offsets.append(above)

    def levels(self) -> Levels:
        """The levels so far, cut to their true length: the only synchronisation of a contraction."""
        totals = torch.stack([offsets[-1] for offsets in self.offsets]).tolist()
        return [(parents[:total], above.diff())
                for parents, total, above in zip(self.parents, totals, self.offsets[1:], strict=False)]

    def _walk_edges(self, offer: tuple[Tensor, Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Visit the edges of G^(t), and keep those of level 2 and later as a list in any order, with its length.

        At levels 1 and 2 the edges are those between neighbouring pixels; later, those of the previous list.
        ``offer`` has points, sizes and keys, to offer every edge to its two ends.
        """
        nothing = self.offsets[-1]  # passed for arguments that a kernel does not read
        points, sizes, keys = offer or (nothing, nothing, nothing)
        options = {**self.options, "WEIGH": offer is not None}
        count = torch.zeros(1, dtype=torch.int64, device=nothing.device)
        if self.edges is None:
            keep = self.level >= 2 or offer is None
            capacity = 2 * self.batch * self.pixels
            out = self._new(2, capacity if keep else 0)
            contraction.walk_pixels[(blocks(self.pixels), self.batch)](
                self.parents[0], self.offsets[1], self.up, points, sizes, self.boxes, keys, out, count,
                self.height, self.width, capacity, *self.ratio, MAPPED=self.level >= 2, EMIT=keep, **options)
        else:
            keep = True
            edges, length = self.edges
            out = torch.empty_like(edges)
            contraction.walk_list[(PROGRAMS,)](
                edges, length, self.up, points, sizes, self.boxes, keys, out, count, edges.shape[1], *self.ratio,
                EMIT=True, **options)
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

    def _padded(self, chosen: Tensor) -> Tensor:
        """Choices of the present regions, as long as there may be regions."""
        padded = self._new(self.capacity)
        padded[: len(chosen)] = chosen
        return padded

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
    """Join regions until at most ``bound`` are left in every image: see ``reference.superpixels``."""
    before = len(levels)
    counts = levels[-1][1]
    while int(counts.max()) > bound:
        chosen, weights = graph.link_regions(None)
        total = int(counts.sum())
        graph.contract(graph._padded(keep_heaviest(chosen[:total], weights[:total], bound, counts)))
        counts = graph.offsets[-1].diff()
    extra = graph.levels()[before:]
    if not extra:
        steps = [torch.arange(count, device=counts.device) for count in counts.tolist()]
        return [*levels, (torch.cat(steps).int(), counts)]
    return [*levels, (compose([parents for parents, _ in extra], graph.offsets[before:]), counts)]
