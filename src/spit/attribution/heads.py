"""The attention of a layer's heads as one map an image, and the class token's row through all layers."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from spit.backbone import Spans
from spit.embedder import take_class_token
from spit.tokens import Tokens

Merge = Literal["max", "mean"]
FEW = 4  # layers between two divisions


def merge_heads(query: Tensor, key: Tensor, spans: Spans, merge: Merge) -> Tensor:
    """``max_h`` or ``mean_h softmax(q_h k_hᵀ / √d)`` of each image, in float32.

    Images of equal length are one batch; so are others on a GPU, padded, their padded keys behind a mask. On a
    CPU those go one by one, as in :func:`~spit.backbone.ragged_attention`, their heads' maps never out of the cache.

    Shape:
        query, key ``(ΣN, heads, d)``; the answer ``(B, L, L)`` with L the longest image, 0 in the columns
        beyond an image's own.
    """
    if query.device.type == "cpu" and not spans.uniform:
        return _looped(query, key, spans, merge)
    return _padded(query, key, spans, merge)


def class_row(maps: Sequence[Tensor], keep: float, weight: float) -> Tensor:
    """The class token's row of ``(k I + w A_ℓ) … (k I + w A_1)``, divided by its sum.

    Taken as a row vector from the last layer to the first, ``r ← k r + w r A_i``, which needs no product
    of two maps. Every few layers it is divided by its sum: a factor that changes no share, and no overflow.

    Args:
        maps: of layers 1 to ℓ, in order.

    Shape:
        maps ``(B, L, L)`` each; the answer ``(B, L)``, each row adding up to 1.
    """
    row = maps[0].new_zeros(maps[0].shape[:2])
    row[:, 0] = 1
    for layer in reversed(range(len(maps))):
        row = torch.baddbmm(row[:, None], row[:, None], maps[layer], beta=keep, alpha=weight)[:, 0]
        if layer % FEW == 0:
            row = row / row.sum(1, keepdim=True)
    return row


def token_values(row: Tensor, spans: Spans) -> Tensor:
    """A padded row for each image as packed values without the class token's own.

    Shape:
        row ``(B, L)`` to ``(ΣN,)``, the class tokens left out.
    """
    packed = row.flatten()[spans.padded_rows()]
    _, others = take_class_token(Tokens(packed[:, None], spans.offsets.long()))
    return others.values[:, 0]


def _looped(query: Tensor, key: Tensor, spans: Spans, merge: Merge) -> Tensor:
    scale, longest = query.shape[-1] ** -0.5, spans.longest
    answer = torch.zeros(len(spans), longest, longest)
    pairs = zip(*(torch.split(rows.float(), list(spans.counts)) for rows in (query * scale, key)), strict=True)
    for target, (q, k) in zip(answer, pairs, strict=True):
        maps = (q.transpose(0, 1) @ k.permute(1, 2, 0)).softmax(-1)  # (heads, N, N)
        target[: len(q), : len(q)] = maps.amax(0) if merge == "max" else maps.mean(0)
    return answer


def _padded(query: Tensor, key: Tensor, spans: Spans, merge: Merge) -> Tensor:
    places, (_, heads, width) = spans.padded_rows(), query.shape

    def pad(rows: Tensor) -> Tensor:
        empty = rows.new_zeros(len(spans) * spans.longest, heads, width)
        padded = rows if spans.uniform else empty.index_copy(0, places, rows)
        return padded.view(len(spans), spans.longest, heads, width).transpose(1, 2).flatten(0, 1)  # (B · heads, L, d)

    q, k = pad(query), pad(key)
    # One call scales and multiplies; the sum's first term counts nothing.
    scores = torch.baddbmm(q.new_empty(1), q, k.transpose(1, 2), beta=0, alpha=width**-0.5)
    scores = scores.float().unflatten(0, (len(spans), heads))
    if not spans.uniform:
        scores = scores.masked_fill(~spans.padding_mask(), float("-inf"))
    maps: Tensor = scores.softmax(-1)
    return maps.amax(1) if merge == "max" else maps.mean(1)
