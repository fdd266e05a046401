"""Attention flow and rollout: what reaches the class token through all layers (App. D)."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.attribution.heads import Merge, Side, class_row, layers_at_once, merge_heads, paint_row
from spit.backbone import Heads, Recorder, Spans
from spit.model import SpitModel


@dataclass(frozen=True)
class Flow:
    """The class token's row of ``∏_i ((1 − λ) I + λ A_i)``, with ``A_i`` the maximum over layer i's heads.

    The product is read as it is written, ``Ã_1 Ã_2 … Ã_ℓ``: what the last layers attend to counts most.
    ``side="left"`` is the other reading, ``Ã_ℓ … Ã_1`` as in Abnar & Zuidema (2020), which leads from the class
    token that h reads back to the tokens that γ made; it is less faithful, see docs/attribution.md. (What the
    paper calls flow is their *rollout* with another λ; their flow is a maximum-flow problem.) The rows are not
    normalised after the maximum, as the paper has it.

    The class asked for plays no part: attention is the same whatever is predicted.

    Args:
        strength: λ, the share of attention against the residual path; 0.9 in the paper.
        merge: how heads become one map, "max" or "mean".
        side: where the next layer's factor goes, "right" or "left".

    Shape:
        images ``(B, C, H, W)`` to ``(B, H, W)``: for every pixel its token's share of the row.
    """

    name: ClassVar[str] = "flow"
    of_class: ClassVar[bool] = False
    strength: float = 0.9
    merge: Merge = "max"
    side: Side = "right"

    def __post_init__(self) -> None:
        if not 0 <= self.strength <= 1:
            raise ValueError(f"expected a strength λ from 0 to 1, got {self.strength}")
        if self.merge not in ("max", "mean"):
            raise ValueError(f"expected heads merged by max or mean, got {self.merge!r}")
        if self.side not in ("left", "right"):
            raise ValueError(f"expected the next factor on the left or right side, got {self.side!r}")

    def config(self) -> dict[str, Any]:
        """All that the map depends on beside model and image."""
        return asdict(self)

    @torch.no_grad()
    def __call__(self, model: SpitModel, images: Tensor, target: Tensor | None = None) -> Tensor:
        waiting: list[Heads] = []
        maps: list[Tensor] = []

        def observe(layer: int, spans: Spans, heads: Heads) -> None:
            waiting.append(heads)
            if len(waiting) >= layers_at_once(heads, spans) or layer == model.config.depth - 1:
                maps.extend(merge_heads(waiting, spans, self.merge))
                waiting.clear()

        partition = model(images, record=Recorder({}, observe=observe)).partition
        return paint_row(class_row(maps, 1 - self.strength, self.strength, self.side), partition)


@dataclass(frozen=True)
class Rollout(Flow):
    """Attention rollout (Abnar & Zuidema, 2020): the mean over heads, half attention and half residual, traced back.

    ``0.5 A_i + 0.5 I`` has rows that add up to 1 already, so that their normalisation changes nothing.
    """

    name: ClassVar[str] = "rollout"
    strength: float = 0.5
    merge: Merge = "mean"
    side: Side = "left"
