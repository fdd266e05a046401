"""A vision transformer of nobody's, in 40 lines, and its seam: what register_seam is for."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit.seams import Seam
from spit.seams.seam import Grid, linear_patches


class PlainBlock(nn.Module):
    """One layer; ``fused`` computes attention by torch's function, which spit can see."""

    def __init__(self, width: int, fused: bool, dropout: float) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fused, self.dropout = fused, dropout

    def forward(self, rows: Tensor) -> Tensor:
        query, key, value = self.qkv(self.norm(rows)).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = F.scaled_dot_product_attention(query, key, value, scale=0.5,
                                                   dropout_p=self.dropout if self.training else 0.0)
        else:
            mixed = (query @ key.mT * 0.5).softmax(-1) @ value
        answer: Tensor = rows + self.out(mixed.transpose(1, 2).flatten(2))
        return answer


class PlainViT(nn.Module):
    def __init__(self, fused: bool = True, prefix: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.table = nn.Parameter(torch.randn(16, 32))
        self.first = nn.Parameter(torch.randn(prefix, 32))
        self.blocks = nn.ModuleList(PlainBlock(32, fused, dropout) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 5)

    def features(self, images: Tensor) -> Tensor:
        rows = self.patches(images).flatten(2).transpose(1, 2) + self.table
        rows = torch.cat([self.first.expand(len(images), -1, -1), rows], 1)
        for block in self.blocks:
            rows = block(rows)
        answer: Tensor = self.norm(rows)
        return answer

    def forward(self, images: Tensor) -> Tensor:
        answer: Tensor = self.head(self.features(images).mean(1) if not len(self.first) else
                                   self.features(images)[:, 0])
        return answer


class PlainSeam(Seam):
    mean, std = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.patch, self.channels, self.size, self.width, self.heads, self.num_classes = 8, 3, (32, 32), 32, 2, 5
        self.prefix = len(module.first)
        self.reads_class = self.prefix > 0

    @property
    def blocks(self) -> Sequence[nn.Module]:
        blocks: Sequence[nn.Module] = self.module.blocks
        return blocks

    @property
    def norm(self) -> nn.Module:
        norm: nn.Module = self.module.norm
        return norm

    def embed(self, patches: Tensor) -> Tensor:
        return linear_patches(patches, self.module.patches.weight, self.module.patches.bias)

    def prefix_rows(self) -> Tensor:
        rows: Tensor = self.module.first
        return rows

    def positions(self, grid: Grid) -> Tensor:
        table = self.module.table.T.unflatten(1, (4, 4))[None]
        if grid != (4, 4):
            table = F.interpolate(table, grid, mode="bilinear")
        rows: Tensor = table[0].flatten(1).T
        return rows

    def summarize(self, rows: Tensor) -> Tensor:
        return rows[:, 0] if self.prefix else rows.mean(1)

    def classify(self, summary: Tensor) -> Tensor:
        logits: Tensor = self.module.head(summary)
        return logits

    def answer(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        return self.module.features(images), self.module(images)


class WrongSeam(PlainSeam):
    """Reads the table at twice its size."""

    def positions(self, grid: Grid) -> Tensor:
        return 2 * super().positions(grid)
