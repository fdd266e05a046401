"""Attention flow and rollout: attention of the class token, multiplied through all layers (App. D)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from spit.attribution.options import MethodOptions
from spit.backbone import Heads, Spans
from spit.forward_pass import ForwardPass
from spit.interruption import may_stop
from spit.options import Options, documented, option, same

Merge = Literal["max", "mean"]
Side = Literal["left", "right"]
SIXTH = 6  # of the layers is left out
FEW = 4  # layers between two divisions
HELD = 2**27  # numbers that layers merged together may take, 512 MB of float32


@documented
@dataclass(frozen=True)
class Flow(Options):
    """The class token's row of ``∏_i ((1 − λ) I + λ A_i)``, with ``A_i`` the maximum over layer i's heads.

    The product is in the paper's order, ``Ã_1 Ã_2 … Ã_ℓ``: the last layers count most. The order of Abnar & Zuidema
    (2020), ``Ã_ℓ … Ã_1``, from the class token that h reads back to γ's tokens, is less faithful and that of
    :class:`Rollout`. (The paper's flow is their *rollout* with another λ; their flow is a maximum-flow problem.) As in
    the paper, rows are not normalised after the maximum. The map is the same for any class.

    Unlike the paper's, the product leaves out the last sixth of the layers, where the class token reads a few bare
    patches of wall or sky most of all; ``skip=0`` takes all layers.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import Flow
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 32, 32), Flow(strength=0.5)).shape
        torch.Size([1, 32, 32])
    """

    name: ClassVar[str] = "flow"
    of_class: ClassVar[bool] = False
    side: ClassVar[Side] = "right"  # of the product, where the next layer's factor goes

    strength: float = option(0.9, "λ, the share of attention against the residual path", least=0, most=1)
    merge: Merge = option("max", "How to merge the heads of a layer")
    skip: int | None = same(MethodOptions, "flow_skip", None)

    config = Options.to_dict

    @torch.no_grad()
    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        trace = seen.trace()
        depth = len(trace.heads)
        layers = trace.heads[: max(1, depth - (depth // SIXTH if self.skip is None else self.skip))]
        step = layers_at_once(layers[0], trace.spans)
        maps = [merged for start in range(0, len(layers), step)
                for merged in merge_heads(layers[start : start + step], trace.spans, self.merge)]
        return seen.paint_rows(class_row(maps, 1 - self.strength, self.strength, self.side, seen.read_rows(trace)))


@documented
@dataclass(frozen=True)
class Rollout(Flow):
    """Attention rollout (Abnar & Zuidema, 2020): the mean over heads, half attention and half residual.

    The rows of ``0.5 A_i + 0.5 I`` add up to 1, so they need no normalisation.

    Example:
        >>> from spit.attribution import Rollout
        >>> Rollout()
        Rollout(strength=0.5, merge='mean', skip=0)
    """

    name: ClassVar[str] = "rollout"
    side: ClassVar[Side] = "left"

    strength: float = same(Flow, "strength", 0.5)
    merge: Merge = same(Flow, "merge", "mean")
    skip: int | None = same(Flow, "skip", 0)


def layers_at_once(heads: Heads, spans: Spans) -> int:
    """Layers to merge in one call: on a CPU one, on a GPU as many as fit, which saves launches."""
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
    may_stop()
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


def class_row(maps: Sequence[Tensor], keep: float, weight: float, side: Side, read: Tensor) -> Tensor:
    """The row of what h reads, the class token mostly, in the product of all ``k I + w A_i``, divided by its sum.

    Computed as a row vector, ``r ← k r + w r A_i``, without products of two maps. Every few layers it is divided by its
    sum, which changes no share and prevents overflow.

    Args:
        maps: of layers 1 to ℓ, in order.
        side: where the next layer's factor goes: "left" for ``Ã_ℓ … Ã_1``, "right" for ``Ã_1 … Ã_ℓ``.
        read: what h reads, see :meth:`~spit.forward_pass.ForwardPass.read_rows`.

    Shape:
        maps ``(B, L, L)`` each and read ``(B, L)`` to ``(B, L)``; each row adds up to 1.
    """
    row = read[:, None].to(maps[0])
    for number, layer in enumerate(reversed(maps) if side == "left" else maps, 1):
        row = torch.baddbmm(row, row, layer, beta=keep, alpha=weight)  # (B, 1, L)
        if number % FEW == 0 or number == len(maps):
            row = row / row.sum(2, keepdim=True)
    return row[:, 0]
