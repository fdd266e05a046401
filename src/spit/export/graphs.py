"""What is exported: γ, f and h as one dense graph, from token features."""

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit.backbone import Block, Transformer
from spit.model import SpitModel

Outputs = tuple[Tensor, ...]
OUTPUTS = {"all": ("logits", "class_token", "tokens"), "classes": ("logits", "class_token")}


class TokenGraph(nn.Module):
    """γ, f and h of one image; the number of tokens N may change from call to call.

    Args:
        model: with a :class:`~spit.backbone.Transformer`.
        outputs: a key of OUTPUTS. Without the other tokens, the last block computes the class token alone.

    Shape:
        features ``(N, F)`` float32 to logits ``(1, num_classes)``, class token ``(1, D)`` and the other tokens
        ``(N, D)`` after the final norm, float32 whatever the parameters are.
    """

    def __init__(self, model: SpitModel, outputs: str = "all") -> None:
        super().__init__()
        if not isinstance(model.backbone, Transformer):
            raise TypeError(f"expected a model with backbone 'transformer' to export, got {model.config.backbone!r}")
        self.embedder, self.backbone, self.head = model.embedder, model.backbone, model.head
        self.outputs = OUTPUTS[outputs]

    def forward(self, features: Tensor) -> Outputs:
        first = self.embedder.class_token
        embedded = self.embedder.projection(features[None].to(first.dtype))
        values = torch.cat([first.expand(1, 1, -1), embedded], 1)
        *blocks, last = cast(Iterable[Block], self.backbone.blocks)
        for block in blocks:
            values = _run(block, values)
        values = self.backbone.norm(_run(last, values, None if "tokens" in self.outputs else 1))
        class_token = values[:, 0]
        answer = self.head(class_token).float(), class_token.float()
        return (*answer, values[0, 1:].float()) if "tokens" in self.outputs else answer


def _run(block: Block, values: Tensor, rows: int | None = None) -> Tensor:
    """One block on images with equally many tokens, ``(B, M, D)``, for their first ``rows`` rows (default: all)."""
    mixed = _attend(block, block.norm1(values), rows)
    values = values[:, :rows] + block.scale1(mixed)
    answer: Tensor = values + block.scale2(block.mlp(block.norm2(values)))
    return answer


def _attend(block: Block, values: Tensor, rows: int | None) -> Tensor:
    """Self-attention of images with equally many tokens, ``(B, M, D)``, for queries of the first ``rows`` rows."""
    attention = block.attention
    width = values.shape[-1]
    weight, bias = attention.qkv.weight, attention.qkv.bias
    query = F.linear(values[:, :rows], weight[:width], None if bias is None else bias[:width])
    both = F.linear(values, weight[width:], None if bias is None else bias[width:])
    heads = (part.unflatten(-1, (attention.heads, -1)).transpose(1, 2) for part in (query, *both.chunk(2, -1)))
    mixed = F.scaled_dot_product_attention(*heads)  # (B, heads, rows, d)
    answer: Tensor = attention.projection(mixed.transpose(1, 2).flatten(2))
    return answer
