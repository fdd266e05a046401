"""Attention times gradient (Chefer et al., 2021), which depends on the class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from spit.attribution.flow import class_row
from spit.backbone import Heads
from spit.forward_pass import ForwardPass
from spit.interruption import may_stop
from spit.options import Options


@dataclass(frozen=True)
class Relevance(Options):
    """The class token's row of ``(I + Ā_ℓ) … (I + Ā_1)``, ``Ā = mean_h max(∇A_h ⊙ A_h, 0)``.

    The rule for class-token ViTs of Chefer, Gur & Wolf, *Generic attention-model explainability* (2021), with ∇A the
    gradient of the class's logit. The backbone does not keep its attention and need not: if ``O = A V`` is a head's
    output, ``∇A = ∇O Vᵀ`` exactly. So one pass with gradients is enough, and only one layer's maps exist at a time.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import Relevance
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 32, 32), Relevance(), target=3).shape
        torch.Size([1, 32, 32])
    """

    name: ClassVar[str] = "relevance"
    of_class: ClassVar[bool] = True

    config = Options.to_dict

    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        return seen.paint_rows(class_relevance(seen, classes))


def class_relevance(seen: ForwardPass, classes: Tensor) -> Tensor:
    """The relevance of each token, the class token first, ``(B, L)``, 0 beyond an image's own tokens."""
    trace = seen.trace(gradients=True)
    layers = trace.layers(lambda logits: logits.gather(1, classes[:, None].clone()).sum())
    with torch.no_grad():
        return class_row([layer_relevance(*layer) for layer in layers], 1, 1, "left", seen.read_rows(trace))


def layer_relevance(heads: Heads, gradient: Tensor, maps: Sequence[Tensor]) -> Tensor:
    """``Ā = mean_h max(∇A_h ⊙ A_h, 0)`` of a layer, ``(B, L, L)``, 0 beyond an image's own rows and columns.

    Args:
        gradient: of the layer's answer, ``(ΣN, heads, d)``.
        maps: what :func:`~spit.backbone.attention_maps` returns.
    """
    may_stop()
    counts = [attention.shape[1] for attention in maps]
    answer = gradient.new_zeros(len(maps), max(counts), max(counts), dtype=torch.float32)
    rows = zip(*(torch.split(packed.float(), counts) for packed in (gradient, heads.value)), strict=True)
    for target, attention, (slope, value) in zip(answer, maps, rows, strict=True):
        slopes = slope.transpose(0, 1) @ value.permute(1, 2, 0)  # (heads, N, N)
        target[: len(value), : len(value)] = (slopes * attention).clamp_(min=0).mean(0)
    return answer
