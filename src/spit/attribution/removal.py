"""A model that gets some tokens of an image and not the others.

Sequences are ragged, so a token can be absent: the image is not painted over and not tokenized again. Where patches
show their neighbours, an absent one's part gets the mean colour (:mod:`spit.attribution.absence`). A shorter sequence
is also a cheaper pass.
"""

from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from spit.attribution.absence import EmbeddedTokens, ImageTokens, embedded
from spit.backbone import Heads, Spans, Transformer
from spit.embedder import put_class_token
from spit.forward_pass import traced
from spit.model import SpitModel

BATCHES = (32, 512)  # subsets in a pass on a CPU and on a GPU
SLOPE_BATCHES = (8, 256)  # the same with gradients
BACKWARD = 3  # forward passes that a pass with gradients counts as


class Subsets:
    """The probability of a class of one image, for any subset of its tokens.

    Args:
        model: in evaluation mode.
        tokens: of the image.
        label: the class.
        batch: subsets in a pass (default: 32, or 512 on a GPU).
        progress: called after each pass with the number of subsets asked so far.

    Attributes:
        asked: how many subsets were asked; one with gradients counts as three.
    """

    def __init__(self, model: SpitModel, tokens: ImageTokens, label: int, batch: int | None = None,
                 progress: Callable[[int], None] = lambda passes: None) -> None:
        self.model, self.tokens, self.label = model, tokens, label
        self.asked = 0
        self._batch, self._progress = batch or BATCHES[tokens.features.is_cuda], progress

    @torch.no_grad()
    def __call__(self, present: Tensor) -> Tensor:
        """``(S, N)`` bool, on any device, to ``(S,)`` float32 on the features' device."""
        answers = []
        for some in present.to(self.tokens.features.device).split(self._batch):
            answers.append(self._logits(some).float().softmax(1)[:, self.label])
            self.asked += len(some)
            self._progress(self.asked)
        return torch.cat(answers)

    def slopes(self, present: Tensor) -> Tensor:
        """``∂ log Φ_c / ∂ log g_v`` at ``g = 1`` in each subset, where ``g_v`` multiplies v's attention in every layer.

        With ``g_v = 0`` token v is absent, so the slope is to first order what the class loses without it. Unlike
        relevance it has a sign: below 0 are tokens that speak against the class. One pass with gradients gives a number
        for every token (:func:`layer_slopes`), at the cost of about 2.5 passes.

        Shape:
            ``(S, N)`` bool, on any device, to ``(S, N)`` float64 on the CPU, 0 for absent tokens.

        Raises:
            ValueError: the backbone does not report its attention.
        """
        present = present.to(self.tokens.features.device)
        model = self.model.view() if self.model.compiled else self.model  # compiled code reports nothing
        slopes = torch.cat([self._slopes(model, some) for some in present.split(SLOPE_BATCHES[present.is_cuda])])
        self.asked += BACKWARD * len(present)
        self._progress(self.asked)
        return slopes.cpu().double()

    def _logits(self, present: Tensor) -> Tensor:
        """γ, f and h of subsets; of the last block only the class token, where f can do that."""
        model = self.model
        if not isinstance(model.backbone, Transformer) or model.compiled:
            return model.run(self.tokens.subsets(present))[0]
        tokens = put_class_token(self._embedded.subsets(present), model.embedder.class_token)
        logits: Tensor = model.head(model.backbone.run_first(tokens.values, Spans.of(tokens)))
        return logits

    def _slopes(self, model: SpitModel, present: Tensor) -> Tensor:
        with torch.inference_mode(False), torch.enable_grad():
            _, trace = traced(model, self.tokens.subsets(present))
        if trace is None:
            raise ValueError(f"backbone {model.config.backbone!r} does not report its attention to the recorder")
        slopes = torch.zeros(present.shape, device=present.device)
        labels = torch.full((len(present),), self.label, device=present.device)
        with torch.no_grad():
            for layer in trace.layers(log_probability(labels)):
                rows = layer_slopes(*layer).split(list(trace.spans.counts))
                slopes[present] += torch.cat([row[model.prefix :] for row in rows])  # without class tokens
        return slopes

    @cached_property
    def _embedded(self) -> EmbeddedTokens:
        return embedded(self.tokens, self.model.embedder)


def log_probability(classes: Tensor) -> Callable[[Tensor], Tensor]:
    """The sum over images of the log-probability of a class of each, a score of the logits."""
    return lambda logits: logits.float().log_softmax(1).gather(1, classes[:, None].clone()).sum()


def layer_slopes(heads: Heads, gradient: Tensor, maps: Sequence[Tensor]) -> Tensor:
    """The slope of each row by its presence in one layer, ``(ΣN,)`` float32.

    With ``O = A V`` the answer of a head, summed over heads:

        ``Σ_q A_qv (∇A_qv − ⟨A_q, ∇A_q⟩) = ⟨V_v, Σ_q A_qv ∇O_q⟩ − Σ_q A_qv ⟨∇O_q, O_q⟩``

    Args:
        gradient: of the layer's answer, ``(ΣN, heads, d)``.
        maps: what :func:`~spit.backbone.attention_maps` returns.
    """
    value, answer, slope = heads.value.float(), heads.answer.float(), gradient.float()
    rows = torch.cat([slope, (slope * answer).sum(2, keepdim=True)], dim=2)  # (ΣN, heads, d + 1)
    counts = [attention.shape[1] for attention in maps]
    columns = torch.cat([(attention.transpose(1, 2) @ row.transpose(0, 1)).transpose(0, 1)
                         for attention, row in zip(maps, rows.split(counts), strict=True)])
    slopes: Tensor = ((columns[..., :-1] * value).sum(2) - columns[..., -1]).sum(1)
    return slopes
