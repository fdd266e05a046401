"""Token merging (Bolya et al., ICLR 2023) on a patch ViT, written from the paper's description.

Between attention and MLP of every block, r tokens join others: tokens alternate between two sets, each of the first
set proposes its most similar one of the second, by the cosine of their keys (a mean over heads), and the r best
proposals are carried out. A token is a mean weighted by the patches that it stands for, and attention adds the
logarithm of that number to its logits. The class token never merges.
"""

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.backbone.block import Block
from spit.model import SpitModel


@torch.no_grad()
def merged_logits(model: SpitModel, images: Tensor, per_block: int) -> tuple[Tensor, list[int]]:
    """Logits ``(B, num_classes)`` of images of one size, and the tokens that leave each block, without the class token.

    Args:
        model: with square patches, in evaluation mode.
        per_block: r, the tokens that merge in each block.
    """
    embedded = model.embedder(model.tokenize(images)[1])
    values = embedded.values.unflatten(0, (len(embedded), -1))
    sizes = values.new_ones(*values.shape[:2], 1)
    counts = []
    for block in cast(Iterable[Block], model.backbone.blocks):
        mixed, keys = _attend(block, values, sizes)
        values, sizes = merge(values + block.scale1(mixed), sizes, keys, per_block)
        values = values + block.scale2(block.mlp(block.norm2(values)))
        counts.append(values.shape[1] - 1)
    return model.head(model.backbone.norm(values[:, 0])), counts


def _attend(block: Block, values: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Attention in proportion to sizes, ``(B, N, D)``, and the keys as a mean over heads, ``(B, N, d)``."""
    attention = block.attention
    heads = attention.qkv(block.norm1(values)).unflatten(-1, (3, attention.heads, -1)).permute(2, 0, 3, 1, 4)
    query, key, value = heads.unbind()
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=sizes.log()[:, None, None, :, 0])
    return attention.projection(mixed.transpose(1, 2).flatten(2)), key.mean(1)


def merge(values: Tensor, sizes: Tensor, keys: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Join ``count`` tokens with others, at most half of them; row 0 is the class token and stays first.

    Shape:
        values ``(B, N, D)``, sizes ``(B, N, 1)`` and keys ``(B, N, d)`` to values ``(B, N − count, D)`` and sizes.
    """
    count = min(count, (values.shape[1] - 1) // 2)
    if count <= 0:
        return values, sizes
    keys = F.normalize(keys, dim=-1)
    scores = keys[:, ::2] @ keys[:, 1::2].mT
    scores[:, 0] = -torch.inf  # the class token is in the first set
    best, partner = scores.max(-1)
    order = best.argsort(1, descending=True)
    gone, kept = order[:, :count, None], order[:, count:].sort(1).values[..., None]
    partner = partner[..., None].gather(1, gone)
    weighted = torch.cat([values * sizes, sizes], -1)
    first, second = weighted[:, ::2], weighted[:, 1::2]
    wide = weighted.shape[-1]
    joined = second.scatter_add(1, partner.expand(-1, -1, wide), first.gather(1, gone.expand(-1, -1, wide)))
    rows = torch.cat([first.gather(1, kept.expand(-1, -1, wide)), joined], 1)
    return rows[..., :-1] / rows[..., -1:], rows[..., -1:]
