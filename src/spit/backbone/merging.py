"""Token merging inside f (Bolya et al., ICLR 2023), for any number of tokens: like tokens join from block to block."""

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from spit.backbone.block import Block
from spit.backbone.linear import ROWS, round_rows
from spit.backbone.recorder import Recorder
from spit.backbone.spans import Spans
from spit.backbone.transformer import Transformer, TransformerOptions
from spit.kernels.recording import round_up
from spit.tokens import Tokens


class MergingTransformer(nn.Module):
    """A :class:`~spit.backbone.Transformer` of the same weights in which tokens merge, for faster inference.

    Between attention and MLP of a block, an image's tokens alternate between two sets, in their order. Each of the
    first set finds the one of the second whose key is most like its own, and the pairs that are most alike join: as
    many in each block that merges, so that the mean over all blocks is ``share`` of the image's tokens. A token is the
    mean of those that joined in it, and attention adds the logarithm of their number to its logits. The class token
    never joins. At the end each token gets the values of the one that it is part of, so that every region has its own
    row.

    Which tokens of an image join does not depend on the batch. Attention cannot be recorded: merged tokens have none.

    Args:
        options: see :class:`~spit.backbone.TransformerOptions`; stochastic depth is not used where tokens merge.
        share: mean tokens of an image over the blocks, of those that enter f, from 0.5 to 1.
        at: blocks that merge, from 0 (default: all). At most half of the tokens join in a block, so a few late blocks
            cannot reach a small share.

    Shape:
        Tokens ``(ΣN, D)`` to Tokens ``(ΣN, D)``.

    Example:
        >>> import spit, torch
        >>> model = spit.create_model("spit_tiny_16", backbone="merging", backbone_options={"share": 0.5})
        >>> model(torch.rand(2, 3, 64, 64)).shape
        torch.Size([2, 1000])
    """

    def __init__(self, options: TransformerOptions, share: float = 0.5, at: Sequence[int] | None = None) -> None:
        super().__init__()
        if not isinstance(share, int | float) or not 0.5 <= share <= 1:
            raise ValueError(f"expected share to be from 0.5 to 1, got {share!r}")
        blocks = set(range(options.depth))
        if at is not None and not (at and blocks.issuperset(at)):
            raise ValueError(f"expected at to be blocks from 0 to {options.depth - 1}, got {at}")
        chosen = sorted(blocks if at is None else set(at))
        least = 1 - sum(options.depth - block - 0.5 for block in chosen) / options.depth / 2
        if at is not None and share < least - 1e-9:
            raise ValueError(f"expected share to be at least {least:.4g} with at={list(chosen)}, since at most half of "
                             f"the tokens join in a block, got {share}")
        plain = Transformer(options)
        self.blocks, self.norm, self.share, self.at = plain.blocks, plain.norm, share, tuple(chosen)

    def forward(self, tokens: Tokens, recorder: Recorder | None = None) -> Tokens:
        """Run the blocks.

        Args:
            tokens: with the class token first in every image.
            recorder: gets features, each token's those of the one that it is part of, and no attention.
        """
        if recorder and recorder.layers.get("attention"):
            raise ValueError("merged tokens have no attention to record; record that of "
                             'model.with_backbone("transformer"), or features alone')
        layers = set(recorder.layers.get("features", ())) if recorder else set()
        spans, values, found = Spans.of(tokens), tokens.values, {}
        values = values if self.training else round_rows(values)
        for layer in range(self.at[0]):  # as any transformer
            values = self.blocks[layer](values, spans)
            if layer in layers:
                found[layer] = values
        images = tokens.replace(values[: len(tokens.values)]).split()
        batches = [images] if tokens.values.is_cuda else [[image] for image in images]
        merged = [self._run(batch, layers) for batch in batches if batch]
        found |= {layer: torch.cat([one[layer] for one in merged]) for layer in merged[0]}
        if recorder:
            recorder.features.update({layer: tokens.replace(found[layer][: len(tokens.values)]) for layer in layers})
        return tokens.replace(self.norm(found[len(self.blocks) - 1]))

    def counts(self, tokens: int) -> list[int]:
        """How many tokens leave each block, of so many that enter f; the class token is not counted."""
        depth = len(self.blocks)
        leaving = round(tokens * (1 - self.share) * depth / sum(depth - block - 0.5 for block in self.at))
        return list(accumulate(range(depth), lambda left, block: left - min(leaving, left // 2) * (block in self.at),
                               initial=tokens))[1:]

    def _run(self, images: Sequence[Tensor], layers: Collection[int]) -> dict[int, Tensor]:
        """The rows of some images, packed, after the last block and some others, from the first that merges."""
        values = pad_sequence(list(images), batch_first=True)  # (B, N, D)
        values = F.pad(values, (0, 0, 0, -values.shape[1] % ROWS))
        counts = torch.tensor([[len(image), *(left + 1 for left in self.counts(len(image) - 1))] for image in images])
        rows = torch.arange(values.shape[1], device=values.device)
        present = rows < counts[:, :1].to(values.device)
        sizes, part_of = present.to(values.dtype), rows.expand_as(present)
        leaving, most = -counts.diff().T.to(values.device), counts.amax(0).tolist()[1:]
        after = {}
        for layer in range(self.at[0], len(self.blocks)):
            block = cast(Block, self.blocks[layer])
            mixed, keys = _attend(block, values, sizes)
            values = values + block.scale1(mixed)
            if layer in self.at:
                values, sizes, moved = merge(values, sizes, keys.mean(1), leaving[layer], round_up(most[layer], ROWS))
                part_of = moved.gather(1, part_of)
                first = torch.arange(len(values), device=values.device)[:, None] * values.shape[1]
                places = (first + part_of)[present]  # of each token in the packed rows
            values = values + block.scale2(block.mlp(block.norm2(values).flatten(0, 1))).view_as(values)
            if layer in layers or layer == len(self.blocks) - 1:
                after[layer] = values.flatten(0, 1).index_select(0, places)
        return after


def _attend(block: Block, values: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Attention in proportion to sizes, ``(B, N, D)``, and the keys, ``(B, heads, N, d)``."""
    attention = block.attention
    projected = attention.qkv(block.norm1(values).flatten(0, 1))  # (BN, 3D)
    query, key, value = (projected.view(*values.shape[:2], 3, attention.heads, -1).permute(2, 0, 3, 1, 4)).unbind()
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=sizes.to(query).log()[:, None, None])
    answer: Tensor = attention.projection(mixed.transpose(1, 2).flatten(2).flatten(0, 1))
    return answer.view_as(values), key


def merge(values: Tensor, sizes: Tensor, keys: Tensor, leaving: Tensor, rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Join tokens of each image: values and sizes of those that are left, and where each token has gone.

    Args:
        values: the class token first; rows of size 0 are padding, and come last.
        sizes: how many tokens each one stands for.
        keys: by which tokens are compared.
        leaving: how many tokens of each image join another; at most half of them, rounded down.
        rows: M, enough for the tokens that are left, with the class token.

    Shape:
        values ``(B, N, D)``, sizes ``(B, N)``, keys ``(B, N, d)`` and leaving ``(B,)`` to ``(B, M, D)``, ``(B, M)``
        and ``(B, N)`` int64.
    """
    keys, present = F.normalize(keys.float(), dim=-1), sizes > 0
    first, second = slice(2, None, 2), slice(1, None, 2)
    alike = (keys[:, first] @ keys[:, second].mT).masked_fill(~present[:, None, second], -torch.inf)
    best, partner = alike.max(-1)
    rank = best.masked_fill(~present[:, first], -torch.inf).argsort(dim=1, descending=True, stable=True).argsort(1)
    gone = torch.zeros_like(present)
    gone[:, first] = rank < leaving[:, None]
    places = (present & ~gone).cumsum(1) - 1
    moved = places.clone()
    moved[:, first] = torch.where(gone[:, first], places[:, second].gather(1, partner), places[:, first])
    weighted = values * sizes[..., None]
    total = values.new_zeros(len(values), rows, values.shape[2]).scatter_add(1, moved[..., None].expand_as(values),
                                                                            weighted)
    joined = sizes.new_zeros(len(sizes), rows).scatter_add(1, moved, sizes)
    return total / joined.clamp(min=1)[..., None], joined, moved
