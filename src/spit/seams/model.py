"""WrappedModel: another library's vision transformer behind τ and φ of spit."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from spit.backbone import Heads, Recorder, Spans
from spit.config import ModelConfig
from spit.embedder import put_class_token
from spit.heads import ClassHead
from spit.images import ImageBlocks
from spit.model import SpitModel
from spit.partition import Partition
from spit.parts import BACKBONES
from spit.seams.attention import WatchedAttention
from spit.seams.crops import CropExtractor, Placed, by_grid, grid_weights
from spit.seams.seam import Grid, Seam, find_seam
from spit.tokenizers import create_tokenizer
from spit.tokens import Tokens


class WrappedModel(SpitModel):
    """A model of spit whose γ, f and h are another library's module: what :func:`spit.wrap` returns.

    The module is ``model.backbone.module``. Its parameters are the model's, under their own names; training one trains
    both. Images are not normalised beforehand.

    Args:
        config: with ``backbone="wrapped"``.
        seam: of the module (default: made from the config, with new weights).
    """

    extractor: CropExtractor
    embedder: "CropEmbedder"  # type: ignore[assignment]
    backbone: "WrappedBackbone"
    head: nn.Module  # type: ignore[assignment]

    def __init__(self, config: ModelConfig, seam: Seam | None = None) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.tokenizer = create_tokenizer(config.tokenizer, **config.tokenizer_options)
        self.extractor = config.create_extractor()
        seam = seam or make_again(config.backbone_options)
        self.backbone = WrappedBackbone(seam, unit=self.extractor.place == "centroid")
        self.embedder = CropEmbedder(seam, self.extractor, config.backbone_options)
        own = config.num_classes == seam.num_classes
        self.head = OwnHead(seam) if own else ClassHead(seam.summary_width, config.num_classes)
        self.budgets = None
        self.prefix, self.reads_class = seam.prefix, seam.reads_class

    @property
    def device(self) -> torch.device:
        return next(self.backbone.parameters()).device

    def extract(self, blocks: ImageBlocks, partition: Partition, half: bool = False) -> Tokens:
        return self.extractor(blocks, partition)

    def encode(self, features: Tokens, recorder: Recorder | None = None, first: bool = False) -> Tokens:
        """γ and f: tokens after the final norm, those of the prefix first in each image."""
        module = self.backbone.module
        if module.training and not self.training:
            raise ValueError(f"expected the wrapped {type(module).__name__} in evaluation mode, as the model is; call "
                             "model.eval()")
        if any(buffer.device != features.values.device for buffer in module.buffers()):
            raise ValueError(f"expected the wrapped {type(module).__name__} on {features.values.device} with its "
                             "buffers; move the model, model.to(device), and not the backbone inside")
        placed = self.extractor.split(features)
        return cast(Tokens, self.backbone(self.embedder(features, placed), placed, recorder))

    def summary(self, encoded: Tokens) -> Tensor:
        seam = self.backbone.seam
        if self.reads_class:
            first = encoded.offsets[:-1, None] + torch.arange(seam.prefix, device=encoded.offsets.device)
            return seam.summarize(encoded.values[first])
        return torch.cat([seam.summarize(rows) for rows in batches(encoded)])

    def check_saved(self) -> None:
        from spit.seams.sources import check_source  # which needs this module

        check_source(self.backbone.module, self.config.backbone_options)

    def compile(self, **options: Any) -> None:
        raise TypeError("spit compiles its own backbones alone, got a wrapped one; call it without model.compile()")

    def no_weight_decay(self) -> set[str]:
        own = getattr(self.backbone.module, "no_weight_decay", set)
        return {f"backbone.module.{name}" for name in own()}

    def group_matcher(self, coarse: bool = False) -> dict[str, Any]:
        raise TypeError("a wrapped backbone has names of its own to sort by depth; call group_matcher() of "
                        "model.backbone.module if it has one")


class CropEmbedder(nn.Module):
    """γ: the backbone's patch embedding and position table, and its prefix tokens put in front.

    Attributes:
        branch: what a retrofit trains beside the patch embedding, from the features of the region; starts at 0.
    """

    seam: Seam

    def __init__(self, seam: Seam, extractor: CropExtractor, colors: Mapping[str, Sequence[float]]) -> None:
        super().__init__()
        object.__setattr__(self, "seam", seam)  # the backbone has its module
        self.patch = extractor.patch
        self.mean, self.std = (tuple(colors[name]) for name in ("mean", "std"))
        if extractor.region:
            self.branch: nn.Linear | None = nn.Linear(extractor.region_width, seam.width, bias=False)
            nn.init.zeros_(self.branch.weight)
        else:
            self.branch = None

    def normalize(self, pixels: Tensor) -> Tensor:
        """``(x − mean) / std`` of rows of pixels, channel by channel."""
        mean, std = (pixels.new_tensor(values).repeat_interleave(self.patch**2) for values in (self.mean, self.std))
        return (pixels - mean) / std

    def forward(self, tokens: Tokens, placed: Placed) -> Tokens:
        """Features ``(ΣN, ·)`` to rows ``(Σ(prefix + N), D)``."""
        rows = self.seam.embed(self.normalize(placed.pixels))
        if self.branch is not None:
            rows = rows + self.branch(placed.region)
        parts = []
        for grid, span in by_grid(placed.grids, tokens.host_counts):
            table = self.seam.positions(grid)
            own = rows[span]
            if table is not None:
                own = own + placed.weights[span, : len(table)].to(table.dtype) @ table
            parts.append(own)
        return put_class_token(tokens.replace(torch.cat(parts)), self.seam.prefix_rows().to(rows.dtype))


class WrappedBackbone(nn.Module):
    """f: the blocks and the final norm of another library's module.

    Args:
        seam: of the module.
        unit: make what lies between the rotations of four cells as long as they are.
    """

    model_class = WrappedModel
    seam: Seam

    def __init__(self, seam: Seam, unit: bool = True) -> None:
        super().__init__()
        self.module, self.unit = seam.module, unit
        object.__setattr__(self, "seam", seam)

    @property
    def blocks(self) -> Sequence[nn.Module]:
        """The attention blocks."""
        return self.seam.blocks

    @property
    def norm(self) -> nn.Module:
        """The final norm."""
        return self.seam.norm

    def forward(self, tokens: Tokens, placed: Placed, recorder: Recorder | None = None) -> Tokens:
        """Run the blocks.

        Args:
            tokens: the prefix first in each image, ``(Σ(prefix + N), D)``.
            placed: where the others lie.
        """
        seam, spans = self.seam, Spans.of(tokens)
        rotations = self._rotations(placed, spans)
        cells = self._cells(placed, spans) if seam.biased else None
        shape = (len(spans), spans.longest) if spans.uniform else (1, len(tokens.values))
        rows = seam.enter(tokens.values.unflatten(0, shape))
        for layer, block in enumerate(seam.blocks):
            observe = None if recorder is None else recorder.observer(layer, spans)
            rotation = None if rotations is None else rotations[layer if len(rotations) > 1 else 0]
            rows = self._run(block, rows, rotation, spans, cells, observe)
            if recorder is not None and recorder.wants("attention", layer) and layer not in recorder.attention:
                raise ValueError(f"{type(self.module).__name__} does not report its attention, which has a bias for "
                                 "each pair of cells or is not torch's; record features alone")
            if recorder is not None and recorder.wants("features", layer):
                recorder.features[layer] = tokens.replace(rows.flatten(0, 1))
        return tokens.replace(seam.norm(rows).flatten(0, 1))

    def _run(self, block: nn.Module, rows: Tensor, rotation: Tensor | None, spans: Spans,
             cells: list[Tensor] | None, observe: Callable[[Heads], None] | None) -> Tensor:
        seam = self.seam
        if spans.uniform and cells is None and observe is None:
            return seam.run(block, rows, rotation)
        if not spans.uniform and block.training and any(getattr(part, "drop_prob", 0) for part in block.modules()):
            raise ValueError("images of different numbers of tokens go through a block as one sequence, which "
                             "stochastic depth would drop whole; set the backbone's drop path to 0")
        watched = WatchedAttention(spans, not spans.uniform, cells, observe)
        with watched:
            answer = seam.run(block, rows, rotation)
        if not watched.calls and (cells is not None or not spans.uniform):
            raise ValueError(f"expected blocks that call torch's scaled_dot_product_attention, got "
                             f"{type(block).__name__} that does not; give images one by one, or load the backbone with "
                             "its fused attention")
        return answer

    def _rotations(self, placed: Placed, spans: Spans) -> Tensor | None:
        """Rotary positions, ``(layers, B, heads, L − prefix, 2, d)``; B is 1 for one sequence of all images.

        Rows of a prefix after the first one are not turned.
        """
        seam = self.seam
        counts = [count - seam.prefix for count in spans.counts]
        parts = []
        for grid, span in by_grid(placed.grids, counts):
            found = seam.rotation(grid)
            if found is None:
                return None
            weights = cells_of(placed, span, grid, grid if found.shape[2] == math.prod(grid) else seam.grid)
            both = torch.cat([found, found.norm(dim=3, keepdim=True)], 3)  # sines and cosines, and their length, 1
            mean, length = torch.einsum("nc,lhcsd->lhnsd", weights.to(both.dtype), both).split([2, 1], 3)
            parts.append(mean * (length / mean.norm(dim=3, keepdim=True).clamp(min=1e-6)) if self.unit else mean)
        table: Tensor = torch.cat(parts, 2)
        if spans.uniform:
            table = table.unflatten(2, (len(spans), -1)).movedim(2, 1)
            return table
        still = torch.stack([torch.zeros_like(table[..., :1, 0, :]), torch.ones_like(table[..., :1, 1, :])], -2)
        still = still.expand(-1, -1, seam.prefix, -1, -1)
        images = [part for image in table.split(counts, 2) for part in (still, image)]
        return torch.cat(images[1:], 2)[:, None]

    def _cells(self, placed: Placed, spans: Spans) -> list[Tensor]:
        """The share of each row in each cell of the module's own grid, ``(L, prefix + cells)`` of each image."""
        seam = self.seam
        shares, row = [], 0
        for count, grid in zip(spans.counts, placed.grids, strict=True):
            own = cells_of(placed, slice(row, row := row + count - seam.prefix), grid, seam.grid)
            shares.append(torch.block_diag(torch.eye(seam.prefix).to(own), own))
        return shares


def make_again(options: Mapping[str, Any]) -> Seam:
    """The seam of a module with new weights, from what :meth:`Seam.source_options` said."""
    from spit.seams.sources import make_module  # which needs this module

    return find_seam(make_module(options.get("source"), options.get("options") or {}))


class OwnHead(nn.Module):
    """h: the module's own head, whose parameters are the backbone's."""

    seam: Seam

    def __init__(self, seam: Seam) -> None:
        super().__init__()
        object.__setattr__(self, "seam", seam)

    @property
    def linear(self) -> nn.Linear | None:
        """As of spit's own head, if the module's is one linear layer."""
        return self.seam.linear

    def forward(self, summary: Tensor) -> Tensor:
        return self.seam.classify(summary)


def cells_of(placed: Placed, rows: slice, grid: Grid, other: Grid) -> Tensor:
    """The weights of the cells of another grid over the same image, for rows placed on a grid, ``(N, others)``."""
    weights = placed.weights[rows, : math.prod(grid)]
    return weights if grid == other else weights @ resampled(grid, other).to(weights)


def resampled(grid: Grid, other: Grid) -> Tensor:
    """The share that each cell of a grid has in the cells of another over the same image, ``(cells, others)``."""
    y, x = (torch.arange(side) for side in grid)
    places = torch.cartesian_prod(y, x).double() + 0.5
    scale = torch.tensor([theirs / ours for ours, theirs in zip(grid, other, strict=True)], dtype=torch.float64)
    return grid_weights(places * scale - 0.5, other)


def batches(tokens: Tokens) -> Iterator[Tensor]:
    """Images of one length as one batch, ``(B, N, D)``; else image by image."""
    counts = tokens.host_counts
    if len(set(counts)) == 1:
        yield tokens.values.unflatten(0, (len(counts), -1))
    else:
        for image in tokens.split():
            yield image[None]


BACKBONES.register("wrapped", WrappedBackbone)
