"""The heads of a layer merged into one map an image, and the class token's row through all layers."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from spit.backbone import Heads, Spans

Merge = Literal["max", "mean"]
Side = Literal["left", "right"]
FEW = 4  # layers between two divisions
HELD = 2**27  # numbers that layers merged together may take, 512 MB of float32


def layers_at_once(heads: Heads, spans: Spans) -> int:
    """The number of layers to merge in one call: on a CPU one, on a GPU as many as fit, since it saves launches."""
    if heads.query.device.type == "cpu":
        return 1
    _, count, width = heads.query.shape
    return max(1, HELD // (len(spans) * spans.longest * count * (3 * width + 2 * spans.longest)))


def merge_heads(layers: Sequence[Heads], spans: Spans, merge: Merge) -> Tensor:
    """``max_h`` or ``mean_h softmax(q_h k_hᵀ / √d)`` of each layer and image, in float32.

    All are one batch, padded if lengths differ: padded keys are masked, and padded queries repeat the last one.

    Shape:
        heads ``(ΣN, heads, d)`` to ``(layers, B, L, L)`` with L the longest image, 0 in padded columns.
    """
    rows = torch.stack([heads.query for heads in layers] + [heads.key for heads in layers]).float()
    ends, columns = spans.offsets[1:, None], torch.arange(spans.longest, device=rows.device)
    places = spans.offsets[:-1, None] + columns  # (B, L)
    rows = rows.unflatten(1, places.shape) if spans.uniform else rows[:, places.minimum(ends - 1)]
    q, k = rows.transpose(2, 3).flatten(0, 2).chunk(2)  # (layers · B · heads, L, d) each
    # One call that scales and multiplies; with beta=0 the first term is ignored.
    scores = torch.baddbmm(q.new_empty(1), q, k.transpose(1, 2), beta=0, alpha=q.shape[2] ** -0.5)
    scores = scores.unflatten(0, (len(layers), len(spans), -1))
    if not spans.uniform:
        scores.masked_fill_((places >= ends)[:, None, None], float("-inf"))
    maps: Tensor = scores.softmax(-1)
    return maps.amax(2) if merge == "max" else maps.mean(2)


def class_row(maps: Sequence[Tensor], keep: float, weight: float, side: Side = "left") -> Tensor:
    """The class token's row of the product of all ``k I + w A_i``, divided by its sum.

    Computed as a row vector, ``r ← k r + w r A_i``, without products of two maps. Every few layers it is divided by its
    sum, which changes no share and prevents overflow.

    Args:
        maps: of layers 1 to ℓ, in order.
        side: where the next layer's factor goes: "left" for ``Ã_ℓ … Ã_1``, "right" for ``Ã_1 … Ã_ℓ``.

    Shape:
        maps ``(B, L, L)`` each to ``(B, L)``; each row adds up to 1.
    """
    row = torch.zeros_like(maps[0][:, :1])
    row[:, :, 0] = 1
    for number, layer in enumerate(reversed(maps) if side == "left" else maps, 1):
        row = torch.baddbmm(row, row, layer, beta=keep, alpha=weight)  # (B, 1, L)
        if number % FEW == 0 or number == len(maps):
            row = row / row.sum(2, keepdim=True)
    return row[:, 0]
