"""NamedViT: a seam for a class that keeps its parts under names."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from spit.seams.names import Names
from spit.seams.seam import Grid, Seam, linear_patches, square_side


class NamedViT(Seam):
    """A vision transformer: a patch embedding, tokens before those of the image, a table of positions, blocks, a head.

    Args:
        module: the backbone.
        names: of its parts.
        size: height and width of its images, or both.
        heads: of a block.
    """

    def __init__(self, module: Any, names: Names, size: Any, heads: int) -> None:
        super().__init__(module)
        self.names, self.heads = names, heads
        self.body = part(module, names.body)
        self.embeddings = part(self.body, names.embeddings)
        layer = part(self.embeddings, names.patch)
        for name, found in ((names.patch, layer), (names.blocks, part(self.body, names.blocks)),
                            (names.norm, part(self.body, names.norm))):
            if found is None:
                raise TypeError(f"expected {type(module).__name__} to have a part {name}, got none: another release of "
                                "its library has it there; update the library")
        self.patch, self.channels = self.describe(layer)
        self.size = (size, size) if isinstance(size, int) else (size[0], size[1])
        self.width = layer.weight.shape[0]
        self.prefix = len(self._prefix_tokens())
        self.num_classes, self.reads_class = 0, "mean" not in names.reads
        self.mean, self.std, self.crop = names.mean, names.std, names.crop

    def describe(self, layer: Any) -> tuple[int, int]:
        """Side of the patches and channels of the images, as the patch embedding has them."""
        if not isinstance(layer, nn.Conv2d):
            raise TypeError("expected a backbone whose patch embedding is one convolution, got "
                            f"{type(layer).__name__}; spit.pool(features, partition) takes its feature map")
        return square_side("kernel_size", layer.kernel_size), layer.in_channels

    @property
    def linear(self) -> nn.Linear | None:
        names = self.names
        head = part(self.module, names.heads[0]) if len(names.heads) == 1 and not names.embeds else None
        return head if isinstance(head, nn.Linear) else None

    @property
    def blocks(self) -> Sequence[nn.Module]:
        return cast(Sequence[nn.Module], part(self.body, self.names.blocks))

    @property
    def norm(self) -> nn.Module:
        return cast(nn.Module, part(self.body, self.names.norm))

    @property
    def pool(self) -> Any:
        """What pools tokens, or None."""
        return part(self.body, self.names.pool) if self.names.pool else None

    def embed(self, patches: Tensor) -> Tensor:
        layer = part(self.embeddings, self.names.patch)
        rows = linear_patches(patches, layer.weight, layer.bias)
        return part(self.embeddings, self.names.after)(rows) if self.names.after else rows

    def _prefix_tokens(self) -> Tensor:
        rows = [found.reshape(-1, self.width) for name in self.names.prefix
                if (found := part(self.embeddings, name)) is not None]
        return torch.cat(rows) if rows else next(self.module.parameters()).new_zeros(0, self.width)

    def _table(self) -> tuple[Tensor | None, int]:
        """The table of positions, ``(rows, D)``, and how many of its rows belong to the prefix."""
        found = part(self.embeddings, self.names.table) if self.names.table else None
        if found is None:
            return None, 0
        table = (found.weight if isinstance(found, nn.Embedding) else found).reshape(-1, self.width)
        return table, len(table) - self.grid[0] * self.grid[1]

    def prefix_rows(self) -> Tensor:
        rows, (table, own) = self._prefix_tokens(), self._table()
        return rows if table is None else rows + nn.functional.pad(table[:own], (0, 0, 0, len(rows) - own))

    def positions(self, grid: Grid) -> Tensor | None:
        table, own = self._table()
        if table is None or grid == self.grid:
            return None if table is None else table[own:]
        resize = part(self.embeddings, "interpolate_pos_encoding")  # which reads a shape and a dtype
        if resize is None:  # the module itself takes images of one size
            return resample(table[own:], self.grid, grid)
        shaped = torch.empty(1, own + grid[0] * grid[1], self.width, dtype=table.dtype, device="meta")
        return cast(Tensor, resize(shaped, grid[0] * self.patch, grid[1] * self.patch)[0, own:])

    def enter(self, rows: Tensor) -> Tensor:
        for name in self.names.enter:
            rows = rows if (layer := part(self.body, name)) is None else layer(rows)
        return rows

    def summarize(self, rows: Tensor) -> Tensor:
        if self.pool is not None:
            pooled: Tensor = self.pool(rows)
        else:
            pooled = torch.cat([rows[:, self.prefix :].mean(1) if read == "mean" else rows[:, read]
                                for read in self.names.reads], 1)
        return part(self.module, self.names.heads[0])(pooled) if self.names.embeds else pooled

    def classify(self, summary: Tensor) -> Tensor:
        if self.names.embeds or not self.names.heads:
            return summary
        heads = [part(self.module, name) for name in self.names.heads]
        logits = [head(own) for head, own in zip(heads, summary.chunk(len(heads), 1), strict=True)]
        return torch.stack(logits).mean(0) if len(logits) > 1 else logits[0]

    @property
    def summary_width(self) -> int:
        if self.names.embeds:
            return int(part(self.module, self.names.heads[0]).out_features)
        return self.width * len(self.names.reads)


def part(module: Any, names: str) -> Any:
    """``module.a.b`` for "a.b", None if it is missing; the module itself for ""."""
    for name in names.split(".") if names else ():
        module = getattr(module, name, None)
    return module


def resample(table: Tensor, grid: Grid, other: Grid) -> Tensor:
    """A table of positions on another grid, between its cells, ``(cells, D)`` to ``(others, D)``."""
    image = table.unflatten(0, grid).movedim(-1, 0)[None]
    return nn.functional.interpolate(image, size=other, mode="bicubic")[0].flatten(1).T
