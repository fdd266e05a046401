"""Attention flow and rollout: what reaches the class token through all layers (App. D)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.attribution.heads import Merge, Side, class_row, layers_at_once, merge_heads
from spit.forward_pass import ForwardPass
from spit.options import Options, documented, option, same


@documented
@dataclass(frozen=True)
class Flow(Options):
    """The class token's row of ``∏_i ((1 − λ) I + λ A_i)``, with ``A_i`` the maximum over layer i's heads.

    The product is read as the paper writes it, ``Ã_1 Ã_2 … Ã_ℓ``: the last layers count most. ``side="left"`` is the
    other reading, ``Ã_ℓ … Ã_1`` as in Abnar & Zuidema (2020), from the class token that h reads back to γ's tokens; it
    is less faithful, see docs/attribution.md. (The paper's flow is their *rollout* with another λ; their flow is a
    maximum-flow problem.) Rows are not normalised after the maximum, as in the paper. The map is the same for any
    class.

    Shape:
        one ``(H, W)`` map an image: for every pixel its token's share of the row.
    """

    name: ClassVar[str] = "flow"
    of_class: ClassVar[bool] = False

    strength: float = option(0.9, "λ, the share of attention against the residual path", least=0, most=1)
    merge: Merge = option("max", "How heads become one map")
    side: Side = option("right", "Where the next layer's factor goes")

    def config(self) -> dict[str, Any]:
        """All that the map depends on beside model and image."""
        return self.to_dict()

    @torch.no_grad()
    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        trace = seen.trace()
        step = layers_at_once(trace.heads[0], trace.spans)
        maps = [merged for start in range(0, len(trace.heads), step)
                for merged in merge_heads(trace.heads[start : start + step], trace.spans, self.merge)]
        return seen.paint_rows(class_row(maps, 1 - self.strength, self.strength, self.side))


@documented
@dataclass(frozen=True)
class Rollout(Flow):
    """Attention rollout (Abnar & Zuidema, 2020): the mean over heads, half attention and half residual, traced back.

    The rows of ``0.5 A_i + 0.5 I`` add up to 1, so they need no normalisation.
    """

    name: ClassVar[str] = "rollout"

    strength: float = same(Flow, "strength", 0.5)
    merge: Merge = same(Flow, "merge", "mean")
    side: Side = same(Flow, "side", "left")
