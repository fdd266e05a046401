"""timm's plain ViTs: VisionTransformer and its variants, distilled DeiT, Eva (RoPE), BEiT (relative bias)."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from spit.seams.seam import Grid, Seam, colors, linear_patches, square_side

PREFIX = ("cls_token", "dist_token", "reg_token")  # in the order of the sequence


class TimmViT(Seam):
    """``timm.models.vision_transformer.VisionTransformer``: an additive table, prefix tokens, blocks, a pool."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        embed = module.patch_embed
        if not isinstance(getattr(embed, "proj", None), nn.Conv2d) or hasattr(embed, "backbone"):  # a stem before it
            raise TypeError(f"expected a backbone whose patch embedding is one convolution, got "
                            f"{type(embed).__name__}; spit.pool(features, partition) takes its feature map")
        described = getattr(module, "pretrained_cfg", None) or {}
        self.patch = square_side("patch_size", embed.patch_size)
        self.channels = embed.proj.in_channels
        grid = embed.grid_size
        self.size = cast(Grid, tuple(embed.img_size or (side * self.patch for side in grid)))
        self.width = module.embed_dim
        self.heads = next(count for part in module.blocks.modules()
                          if isinstance(count := getattr(part, "num_heads", None), int))
        self.num_classes = module.num_classes
        self.prefix = sum(rows.shape[1] for rows in self._prefix_tokens())
        self.reads_class = getattr(module, "global_pool", "token") in ("token", "") and self.prefix > 0
        self.mean, self.std = colors(described, "mean", self.mean), colors(described, "std", self.std)
        self.crop = described.get("crop_pct") if described.get("crop_mode", "center") == "center" else None

    @property
    def linear(self) -> nn.Linear | None:
        head = self.module.head
        return head if isinstance(head, nn.Linear) else None

    @property
    def blocks(self) -> Sequence[nn.Module]:
        return cast(Sequence[nn.Module], self.module.blocks)

    @property
    def norm(self) -> nn.Module:
        return cast(nn.Module, self.module.norm)

    def embed(self, patches: Tensor) -> Tensor:
        embed = self.module.patch_embed
        answer: Tensor = embed.norm(linear_patches(patches, embed.proj.weight, embed.proj.bias))
        return answer

    def _prefix_tokens(self) -> list[Tensor]:
        found = (getattr(self.module, name, None) for name in PREFIX)
        return [rows for rows in found if rows is not None]

    def prefix_rows(self) -> Tensor:
        parts = [rows[0] for rows in self._prefix_tokens()]
        if not parts:
            empty: Tensor = next(self.module.parameters()).new_zeros(0, self.width)
            return empty
        rows = torch.cat(parts)
        table, count = self._table()
        return rows if table is None or not count else rows + table[0, :count]

    def _table(self) -> tuple[Tensor | None, int]:
        """The module's table of positions, and how many of its rows belong to prefix tokens."""
        table: Tensor | None = getattr(self.module, "pos_embed", None)
        rows, columns = self.module.patch_embed.grid_size
        return table, 0 if table is None else table.shape[1] - rows * columns

    def positions(self, grid: Grid) -> Tensor | None:
        from timm.layers import resample_abs_pos_embed

        table, own = self._table()
        if table is None:
            return None
        if grid != tuple(self.module.patch_embed.grid_size):
            table = resample_abs_pos_embed(table, new_size=list(grid), old_size=self.module.patch_embed.grid_size,
                                           num_prefix_tokens=own)
        return table[0, own:]

    def enter(self, rows: Tensor) -> Tensor:
        norm = getattr(self.module, "norm_pre", None)
        return rows if norm is None else norm(rows)

    def summarize(self, rows: Tensor) -> Tensor:
        if not getattr(self.module, "global_pool", "token") and getattr(self.module, "attn_pool", None) is None:
            return rows[:, 0] if self.prefix else rows.mean(1)  # the module itself returns all tokens
        answer: Tensor = self.module.forward_head(rows, pre_logits=True)
        return answer

    def classify(self, summary: Tensor) -> Tensor:
        answer: Tensor = self.module.head(summary)
        return answer

    def answer(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        rows = self.module.forward_features(images)
        logits = self.module.forward_head(rows)
        return rows, logits if logits.ndim == 2 else None

    @property
    def summary_width(self) -> int:
        return int(getattr(self.module, "head_hidden_size", None) or self.module.num_features)

    def source_options(self) -> dict[str, Any]:
        described: Any = getattr(self.module, "pretrained_cfg", None) or {}
        if not (name := described.get("architecture")):
            return {}
        options = {"img_size": list(self.size), "in_chans": self.channels, "num_classes": self.num_classes}
        return {"source": f"timm:{name}", "options": {**getattr(self.module, "_model_args", {}), **options}}


class TimmDistilled(TimmViT):
    """``timm.models.deit.VisionTransformerDistilled``: the mean of two heads, on a token each."""

    linear = None  # there are two

    @property
    def summary_width(self) -> int:
        return 2 * self.width

    def summarize(self, rows: Tensor) -> Tensor:
        return rows[:, :2].flatten(1)

    def classify(self, summary: Tensor) -> Tensor:
        first, second = summary.split(self.width, 1)
        answer: Tensor = (self.module.head(first) + self.module.head_dist(second)) / 2
        return answer


class TimmEva(TimmViT):
    """``timm.models.eva.Eva``: a table, rotary positions, or both."""

    def rotation(self, grid: Grid) -> Tensor | None:
        rope: Any = getattr(self.module, "rope", None)
        if rope is None:
            return None
        fixed = grid == self.grid and getattr(rope, "feat_shape", None) is not None
        table: Tensor = rope.get_embed() if fixed else rope.get_embed(shape=list(grid))
        table = table if table.ndim == 4 else table[None, None]  # one for all layers and heads
        return cast(Tensor, table.unflatten(-1, (2, -1)))

    def run(self, block: nn.Module, rows: Tensor, rotation: Tensor | None) -> Tensor:
        answer: Tensor = block(rows, rope=None if rotation is None else rotation.flatten(-2))
        return answer


class TimmBeit(TimmViT):
    """``timm.models.beit.Beit``: a bias for each pair of cells in every block."""

    biased = True

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        if module.rel_pos_bias is not None:
            raise TypeError("expected a BEiT with a relative bias in each block, got one that shares it")
