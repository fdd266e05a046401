"""Superpixel contraction (§2.2) in Triton: ``reference.superpixels``, bit for bit, without host synchronisation.

Every image has room for as many regions as it could have, and regions are numbered within their image; only the device
knows how many there are. Sums are integers, so the order of atomics does not matter.
"""

from typing import Any

import torch
import triton
from torch import Tensor

from spit.kernels.portable import Levels, compose, flatten
from spit.kernels.recording import replay
from spit.kernels.rules import EUCLIDEAN, SCALE, Rules
from spit.kernels.triton import contraction, forest, regions
from spit.kernels.triton.launch import BLOCK, EXACT, blocks
from spit.kernels.triton.tiles import ACROSS, LANES, cut
from spit.tokens import offsets_of

PACKABLE = 2**19
"""In images with fewer pixels, two sums fit one 64-bit word."""
CHUNK = 1024
"""Vertices whose roots one program numbers."""
SQUARES = 128
"""Squares of four pixels whose edges one program weighs."""
WARP_SQUARES = 32
"""Squares of four pixels that a single warp sums up or joins; it waits for its longest way to a root."""
WARP_REGIONS = 128
"""Regions that a single warp adds to those above."""
LINK_ROWS = 32
"""Rows of a strip whose pixels choose a neighbour."""
BUSY = 8192
"""Warps that keep a GPU busy. There are not many more to go through the regions, of which only the device knows how
many there are."""


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """See :func:`spit.kernels.reference.superpixels`."""
    graph = Graph(features.contiguous(), rules)
    graph.contract_levels()
    return graph.levels() if rules.max_tokens is None else _bounded(graph, rules.max_tokens)


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """See :func:`spit.kernels.reference.superpixel_labels`.

    Nothing waits for the device, except the bound, which counts what is left.
    """
    if rules.max_tokens is not None:
        levels = superpixels(features, rules)
        return flatten(levels, features), levels[-1][1]
    labels, counts = replay(_last_level, (features,), rules)
    return labels, counts


def _last_level(tensors: tuple[Tensor, ...], rules: Rules) -> tuple[Tensor, ...]:
    graph = Graph(tensors[0].contiguous(), rules)
    graph.contract_levels()
    return graph.final_labels(), graph.counts[-1]


def _bounded(graph: "Graph", bound: int) -> Levels:
    """Join regions until at most ``bound`` are left in every image: see ``reference.superpixels``."""
    levels, counts = graph.levels(), graph.counts[-1]
    while int(counts.max()) > bound:
        chosen, weights = graph.link_regions(None)
        filled = graph.filled(counts)
        first = (counts.cumsum(0) - counts)[:, None]  # keep_heaviest numbers regions image after image
        kept = forest.keep_heaviest((chosen + first)[filled], weights[filled], bound, counts)
        chosen[filled] = (kept - first.expand_as(filled)[filled]).int()
        graph.contract(chosen)
        counts = graph.counts[-1]
    steps = graph.levels()[len(levels):]
    if not steps:
        places = torch.arange(graph.room, device=counts.device, dtype=torch.int32).expand(len(counts), -1)
        return [*levels, (places[graph.filled(counts)], counts)]
    below = [offsets_of(counts) for _, counts in (levels[-1], *steps)]
    return [*levels, (compose([parents for parents, _ in steps], below), counts)]


class Graph:
    """The present level: regions with their sums and records, and the pixels' labels one level below or here."""

    def __init__(self, features: Tensor, rules: Rules) -> None:
        self.features, self.rules = features, rules
        self.batch, self.channels, self.height, self.width = features.shape
        self.pixels = self.height * self.width
        if self.batch * self.pixels >= 2**31:
            raise ValueError(f"a batch of {self.batch} images of {self.height}×{self.width} has too many pixels for "
                             "32-bit numbers; split it")
        # Every pixel with a neighbour joins one, so there are at most half as many regions.
        self.room = self.pixels // 2 + 1
        self.packed = self.pixels < PACKABLE
        self.words = self.channels // 2 + 1 if self.packed else self.channels + 1
        self.boxed = rules.compactness > 0
        record = int(triton.next_power_of_2(self.channels + 1))
        self.layout = {"WIDTH": record, "STRIDE": 2 * max(record, 4) if self.boxed else record}  # see contraction.py
        self.narrow = self.pixels < 2**29 and self.height + self.width < 23000
        self.ratio = (float(rules.compactness), float(1 - rules.compactness))  # of density and similarity
        self.counts: list[Tensor] = []  # regions of each image, level by level
        self.parents: list[Tensor] = []  # the pixels' (B, P), then those of regions (B, room)
        self.labels = self.sums = self.records = features  # of the present level; see contract
        self.mapped = False  # whether labels are those of the level below

    def contract_levels(self) -> None:
        """The levels of §2.2 and the final merge of App. B."""
        self.contract(self.link_pixels())
        for _ in range(1, self.rules.levels):
            self.contract(self.link_regions(self.rules.loop_clip)[0])
        if self.rules.merge_threshold > 0:
            self.contract(self.merge_below(self.rules.merge_threshold))

    def link_pixels(self) -> Tensor:
        """Level 0: the direction of the best of four neighbours."""
        strips = cut(self.width, 1, self.features.numel(), LINK_ROWS)
        directions = self._new(self.batch, self.pixels, dtype=torch.int8)
        contraction.link_pixels[strips.grid(self.height, self.batch)](
            self.features, directions, self.height, self.width, strips.abreast, SCALE=SCALE, C=self.channels,
            KIND=self.rules.kind, COLUMNS=strips.columns, ROWS=strips.rows, LANES=LANES, num_warps=1, **EXACT)
        return directions

    def link_regions(self, loop_clip: float | None) -> tuple[Tensor, Tensor]:
        """Ê^(t), t ≥ 1: each region's best neighbour, or itself if self-loops have a bound, and the weight."""
        keys, squares = self._points(self.rules.kind)
        options = {"BOXES": self.boxed, "NARROW": self.narrow}
        self._visit(contraction.weigh_edges, SQUARES, keys, num_warps=SQUARES // 32, ratio_density=self.ratio[0],
                    ratio_similarity=self.ratio[1], KIND=self.rules.kind, **options)
        chosen = self._new(self.batch, self.room)
        weights = self._new(self.batch, self.room, dtype=torch.float32)
        contraction.choose[self._grid(BLOCK)](
            keys, self.records, self.counts[-1], squares, chosen, weights, self.room, self.pixels, *self.ratio,
            LOOPS=loop_clip is not None, LOOP_CLIP=loop_clip or 0.0, C=self.channels, STRIDE=self.layout["STRIDE"],
            BLOCK=BLOCK, **options, **EXACT)
        return chosen, weights

    def merge_below(self, threshold: float) -> Tensor:
        """Final thresholding (App. B): each region to the smallest it is joined with."""
        self._points(EUCLIDEAN)
        chosen = self._new(self.batch, self.room)
        grid = (blocks(self.room), self.batch)
        forest.start_alone[grid](chosen, self.counts[-1], self.room, BLOCK=BLOCK)
        self._visit(forest.unite_edges, WARP_SQUARES, chosen, num_warps=1, near=threshold * threshold)
        forest.shorten[grid](chosen, self.counts[-1], self.room, BLOCK=BLOCK)
        return chosen

    def contract(self, chosen: Tensor) -> None:
        """π^(t) → π^(t+1): the trees of the forest become regions."""
        pixels = not self.parents
        room = self.pixels if pixels else self.room
        sizes = chosen if pixels else self.counts[-1]  # not read for pixels
        chunks = blocks(room, CHUNK)
        counts = self._new(self.batch, chunks)
        totals = self._new(self.batch, dtype=torch.int64)
        numbers = self._new(self.batch, room)
        sums = self._new(self.batch * self.room * self.words, dtype=torch.int64)
        records = self._new(self.batch * self.room * self.layout["STRIDE"])
        options = {"WORDS": self.words, "STRIDE": self.layout["STRIDE"], "BOXES": self.boxed}
        grid = (chunks, self.batch)
        forest.count_roots[grid](chosen, sizes, counts, room, self.pixels, self.width, PIXELS=pixels, BLOCK=CHUNK)
        forest.number_roots[grid](chosen, sizes, counts, numbers, totals, self.sums, self.records, sums, records, room,
                                 self.room, self.pixels, self.width, PIXELS=pixels, BLOCK=CHUNK, **options)
        parents = self._new(self.batch, room)
        if pixels:
            tiles, grid = self._tiles(WARP_SQUARES)
            forest.sum_pixels[grid](
                self.features, chosen, numbers, parents, sums, records, self.height, self.width, tiles, self.room,
                C=self.channels, PACKED=self.packed, SCALE=SCALE, BLOCK=WARP_SQUARES, num_warps=1, **options)
            self.labels = parents
        else:
            forest.sum_regions[self._grid(WARP_REGIONS, 1)](
                chosen, sizes, numbers, self.sums, self.records, parents, sums, records, self.room,
                BLOCK=WARP_REGIONS, num_warps=1, **options)
            self.mapped = True
        self.sums, self.records = sums, records
        self.parents.append(parents)
        self.counts.append(totals)

    def final_labels(self) -> Tensor:
        """The region of each pixel in the present level, ``(B, H, W)``."""
        labels = self._relabelled() if self.mapped else self.labels
        return labels.view(self.batch, self.height, self.width)

    def levels(self) -> Levels:
        """The levels so far, image after image: the only synchronisation of a contraction."""
        levels = [(self.parents[0].flatten(), self.counts[0])]
        for parents, below, above in zip(self.parents[1:], self.counts, self.counts[1:], strict=False):
            levels.append((parents[self.filled(below)], above))
        return levels

    def filled(self, counts: Tensor) -> Tensor:
        """Which places of ``(B, room)`` hold regions."""
        return torch.arange(self.room, device=counts.device) < counts[:, None]

    def _points(self, kind: int) -> tuple[Tensor, Tensor]:
        """Write the points of regions; keys without edges, and Σ|π|² of each image."""
        keys = self._new(self.batch * self.room, dtype=torch.int64)
        squares = torch.zeros(self.batch, dtype=torch.int64, device=keys.device)
        contraction.region_points[self._grid(BLOCK)](
            self.sums, self.counts[-1], self.records, keys, squares, self.room, C=self.channels, WORDS=self.words,
            PACKED=self.packed, SCALE=SCALE, KIND=kind, BLOCK=BLOCK, **self.layout, **EXACT)
        return keys, squares

    def _visit(self, kernel: Any, squares: int, *given: Tensor, **options: float) -> None:
        """Run a kernel on all squares of pixels; if labels are those of the level below, they come up."""
        up, labels = (self.parents[-1], torch.empty_like(self.labels)) if self.mapped else (self.labels, self.labels)
        tiles, grid = self._tiles(squares)
        kernel[grid](self.labels, up, labels, self.records, *given, self.height, self.width, tiles, self.room,
                     MAPPED=self.mapped, C=self.channels, BLOCK=squares, **self.layout, **options, **EXACT)
        self.labels, self.mapped = labels, False

    def _tiles(self, squares: int) -> tuple[int, tuple[int, int]]:
        """Tiles of so many squares side by side, and programs for all of them."""
        tiles = blocks(self.width, 2 * ACROSS)
        return tiles, (tiles * blocks(self.height, 2 * squares // ACROSS), self.batch)

    def _relabelled(self) -> Tensor:
        labels = torch.empty_like(self.labels)
        regions.relabel[(blocks(self.pixels), self.batch)](
            self.labels, self.parents[-1], labels, self.pixels, self.room, BLOCK=BLOCK)
        return labels

    def _grid(self, block: int, warps: int = 4) -> tuple[int, int]:
        """Programs for all regions that there could be, each for many of them in large batches."""
        return min(blocks(self.room, block), blocks(BUSY, warps * self.batch)), self.batch

    def _new(self, *shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self.features.device)
