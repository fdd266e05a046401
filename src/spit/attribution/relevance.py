"""Gradient attention relevance (Chefer et al., 2021), a peer that depends on the class."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.attribution.heads import class_row, paint_row
from spit.attribution.targets import choose_classes
from spit.backbone import Heads, Recorder, Spans, attention_maps
from spit.model import SpitModel


@dataclass(frozen=True)
class Relevance:
    """The class token's row of ``(I + Ā_ℓ) … (I + Ā_1)``, ``Ā = mean_h max(∇A_h ⊙ A_h, 0)``.

    The rule for class-token ViTs of Chefer, Gur & Wolf, *Generic attention-model explainability* (2021),
    with ∇A the gradient of the class's logit. The backbone never keeps its attention, and need not: where
    ``O = A V`` is a head's answer, ``∇A = ∇O Vᵀ``, exactly. So one backward pass to the answers of all
    layers is enough, and maps exist for one layer at a time.

    Shape:
        images ``(B, C, H, W)`` to ``(B, H, W)``: for every pixel its token's share of the row.
    """

    name: ClassVar[str] = "relevance"
    of_class: ClassVar[bool] = True

    def config(self) -> dict[str, Any]:
        """All that the map depends on beside model and image: nothing."""
        return {}

    def __call__(self, model: SpitModel, images: Tensor, target: Tensor | None = None) -> Tensor:
        if model.backbone.compiled is not None:  # compiled code has no answers of layers to go back to
            model = model.with_tokenizer(model.tokenizer)
        layers: list[Heads] = []
        seen: list[Spans] = []

        def observe(layer: int, spans: Spans, heads: Heads) -> None:
            if not heads.answer.requires_grad:  # frozen parameters: the graph begins here
                heads.answer.requires_grad_()
            layers.append(heads)
            seen.append(spans)

        with torch.inference_mode(False), torch.enable_grad():
            images = images.clone() if images.is_inference() else images
            output = model(images, record=Recorder({}, observe=observe))
            classes = choose_classes(output.logits, target)
            score = output.logits.gather(1, classes[:, None]).sum()  # each image has its own logit
            gradients = torch.autograd.grad(score, [heads.answer for heads in layers])
        with torch.no_grad():
            maps = [_relevant(heads, gradient, seen[0]) for heads, gradient in zip(layers, gradients, strict=True)]
            return paint_row(class_row(maps, 1, 1), output.partition)


def _relevant(heads: Heads, gradient: Tensor, spans: Spans) -> Tensor:
    """``mean_h max(∇A_h ⊙ A_h, 0)``, ``(B, L, L)``, 0 beyond an image's own rows and columns."""
    answer = gradient.new_zeros(len(spans), spans.longest, spans.longest, dtype=torch.float32)
    counts = list(spans.counts)
    maps = attention_maps(heads.query, heads.key, spans)
    rows = zip(*(torch.split(packed.float(), counts) for packed in (gradient, heads.value)), strict=True)
    for target, attention, (slope, value) in zip(answer, maps, rows, strict=True):
        slopes = slope.transpose(0, 1) @ value.permute(1, 2, 0)  # (heads, N, N)
        target[: len(value), : len(value)] = (slopes * attention).clamp_(min=0).mean(0)
    return answer
