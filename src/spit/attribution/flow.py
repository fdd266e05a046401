"""Attention flow and rollout: attention of the class token, multiplied through all layers (App. D)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spit.attribution.heads import Merge, Side, class_row, layers_at_once, merge_heads
from spit.forward_pass import ForwardPass
from spit.options import Options, documented, option, same


@documented
@dataclass(frozen=True)
class Flow(Options):
    """The class token's row of ``∏_i ((1 − λ) I + λ A_i)``, with ``A_i`` the maximum over layer i's heads.

    The product is in the paper's order, ``Ã_1 Ã_2 … Ã_ℓ``: the last layers count most. ``side="left"`` is the order of
    Abnar & Zuidema (2020), ``Ã_ℓ … Ã_1``, from the class token that h reads back to γ's tokens; it is less faithful,
    see docs/attribution.md. (The paper's flow is their *rollout* with another λ; their flow is a maximum-flow problem.)
    As in the paper, rows are not normalised after the maximum. The map is the same for any class.

    Shape:
        one ``(H, W)`` map an image: for every pixel its token's share of the row.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import Flow
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 32, 32), Flow(strength=0.5)).shape
        torch.Size([1, 32, 32])
    """

    name: ClassVar[str] = "flow"
    of_class: ClassVar[bool] = False

    strength: float = option(0.9, "λ, the share of attention against the residual path", least=0, most=1)
    merge: Merge = option("max", "How to merge the heads of a layer")
    side: Side = option("right", "Side of the product where the next layer's factor goes")

    config = Options.to_dict

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
    """Attention rollout (Abnar & Zuidema, 2020): the mean over heads, half attention and half residual.

    The rows of ``0.5 A_i + 0.5 I`` add up to 1, so they need no normalisation.

    Example:
        >>> from spit.attribution import Rollout
        >>> Rollout()
        Rollout(strength=0.5, merge='mean', side='left')
    """

    name: ClassVar[str] = "rollout"

    strength: float = same(Flow, "strength", 0.5)
    merge: Merge = same(Flow, "merge", "mean")
    side: Side = same(Flow, "side", "left")
