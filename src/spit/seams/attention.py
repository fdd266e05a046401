"""Attention of ragged batches inside other people's blocks.

A block is given all images of a batch as one sequence, ``(1, ΣN, D)``. Its linear layers and norms work row by row and
need not know; its attention must not mix images. Every current library computes it by
``torch.nn.functional.scaled_dot_product_attention`` or by ``torch.nn.MultiheadAttention``, so while a block runs, calls
of these functions go through :class:`WatchedAttention`, which attends inside each image, and hands queries, keys and
values to a recorder. No code of the library is replaced or copied.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from spit.backbone import Heads, Spans, ragged_attention

MULTIHEAD = signature(F.multi_head_attention_forward)
UNREAD = ("bias_k", "bias_v", "add_zero_attn", "key_padding_mask", "need_weights", "attn_mask",
          "use_separate_proj_weight", "static_k", "static_v", "is_causal")  # plain self-attention has none of these


class WatchedAttention(TorchFunctionMode):
    """What replaces scaled_dot_product_attention while a block of a backbone runs.

    Args:
        spans: which rows belong to which image.
        packed: whether the block sees one sequence of all rows; else it sees a batch of images of equal length.
        cells: for blocks with a bias for each pair of cells, the share of each row in each cell, one of each image,
            ``(L, prefix + cells)``: the bias of two regions is the average over their cells.
        observe: called with the heads of each call.

    Attributes:
        calls: how often attention was computed.
    """

    def __init__(self, spans: Spans, packed: bool, cells: Sequence[Tensor] | None = None,
                 observe: Callable[[Heads], None] | None = None) -> None:
        super().__init__()
        self.spans, self.packed, self.cells, self.observe = spans, packed, cells, observe
        self.calls = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            return self.attend(*args, **(kwargs or {}))
        if func is F.multi_head_attention_forward:
            given = MULTIHEAD.bind(*args, **(kwargs or {})).arguments
            if given["query"] is given["key"] is given["value"] and all(
                    given.get(name) is None or given[name] is False for name in UNREAD):
                return self._multihead(given), None
        return func(*args, **(kwargs or {}))

    def _multihead(self, given: Mapping[str, Any]) -> Tensor:
        """Self-attention of ``torch.nn.MultiheadAttention``, ``(N, B, D)``."""
        rows = F.linear(given["query"], given["in_proj_weight"], given["in_proj_bias"])
        query, key, value = rows.unflatten(-1, (3, given["num_heads"], -1)).permute(2, 1, 3, 0, 4)  # (B, heads, N, d)
        mixed = self.attend(query, key, value, dropout_p=given["dropout_p"] if given["training"] else 0.0)
        return F.linear(mixed.permute(2, 0, 1, 3).flatten(2), given["out_proj_weight"], given["out_proj_bias"])

    def attend(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
               is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False) -> Tensor:
        """Attention inside each image; shapes as in torch, ``(B, heads, N, d)``."""
        self.calls += 1
        if is_causal or (dropout_p and self.packed):
            raise ValueError("images of different numbers of tokens go through attention without dropout that is not "
                             "causal; set the backbone's attention dropout to 0")
        if key.shape[1] != query.shape[1]:  # grouped queries
            key, value = (rows.repeat_interleave(query.shape[1] // rows.shape[1], 1) for rows in (key, value))
        if scale is not None:
            query = query * (scale * query.shape[-1] ** 0.5)
        if attn_mask is not None and self.cells is not None:
            return self._biased(query, key, value, attn_mask)
        if not self.packed and self.observe is None:
            return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p)
        batch = query.shape[0]
        q, k, v = (_packed(part) for part in (query, key, value))
        if self.packed:
            answer = ragged_attention(q, k, v, self.spans)
        else:
            answer = _packed(F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p))
        if self.observe is not None and attn_mask is None:
            self.observe(Heads(q, k, v, answer))
        return _unpacked(answer, batch)

    def _biased(self, query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
        """Attention with ``E B Eᵀ``, E the shares of :attr:`cells`, image by image."""
        counts = list(self.spans.counts)
        images = [_packed(part).split(counts) for part in (query, key, value)]
        answers = []
        for q, k, v, shares in zip(*images, self.cells or (), strict=True):
            own = (shares @ bias[0].to(shares.dtype) @ shares.T).to(q.dtype)  # (heads, L, L)
            answers.append(_packed(F.scaled_dot_product_attention(
                _unpacked(q, 1), _unpacked(k, 1), _unpacked(v, 1), own[None])))
        return _unpacked(torch.cat(answers), len(query))


def _packed(rows: Tensor) -> Tensor:
    """``(B, heads, N, d)`` to ``(BN, heads, d)``."""
    return rows.transpose(1, 2).flatten(0, 1)


def _unpacked(rows: Tensor, batch: int) -> Tensor:
    """The inverse of :func:`_packed`."""
    answer: Tensor = rows.unflatten(0, (batch, -1)).transpose(1, 2)
    return answer
