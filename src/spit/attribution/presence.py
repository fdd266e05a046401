"""The slope of a class's log-probability by the presence of each token."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spit.attribution.absence import ImageTokens
from spit.backbone import Heads
from spit.forward_pass import traced
from spit.model import SpitModel

BATCHES = (8, 256)  # subsets in a pass with gradients on a CPU and on a GPU
BACKWARD = 3  # forward passes that a pass with gradients counts as


def presence_slopes(model: SpitModel, tokens: ImageTokens, present: Tensor, label: int) -> Tensor:
    """``∂ log Φ_c / ∂ log g_v`` at ``g = 1`` in each subset, where ``g_v`` multiplies v's attention in every layer.

    With ``g_v = 0`` token v is absent, so the slope is to first order what the class loses without it. Unlike relevance
    it has a sign: below 0 are tokens that speak against the class. With ``O = A V`` the answer of a head,

        ``Σ_q A_qv (∇A_qv − ⟨A_q, ∇A_q⟩) = ⟨V_v, Σ_q A_qv ∇O_q⟩ − Σ_q A_qv ⟨∇O_q, O_q⟩``,

    summed over layers and heads. So one pass with gradients gives a number for every token, at the cost of about 2.5
    passes.

    Args:
        model: in evaluation mode; its backbone reports its attention.
        tokens: of the image.
        present: the subsets, bool, on any device.
        label: the class.

    Shape:
        present ``(S, N)`` to ``(S, N)`` float32 on the features' device, 0 for absent tokens.

    Raises:
        ValueError: the backbone does not report its attention.
    """
    present = present.to(tokens.features.device)
    model = model.view() if model.compiled else model  # compiled code reports nothing
    return torch.cat([_slopes(model, tokens, some, label) for some in present.split(BATCHES[present.is_cuda])])


def log_probability(classes: Tensor) -> Callable[[Tensor], Tensor]:
    """The sum over images of the log-probability of a class of each, a score of the logits."""
    return lambda logits: logits.float().log_softmax(1).gather(1, classes[:, None].clone()).sum()


def _slopes(model: SpitModel, tokens: ImageTokens, present: Tensor, label: int) -> Tensor:
    with torch.inference_mode(False), torch.enable_grad():
        _, trace = traced(model, tokens.subsets(present))
    if trace is None:
        raise ValueError(f"backbone {model.config.backbone!r} does not report its attention to the recorder")
    found = torch.zeros(present.shape, device=present.device)
    with torch.no_grad():
        for layer in trace.layers(log_probability(torch.full((len(present),), label, device=present.device))):
            rows = layer_slopes(*layer).split(list(trace.spans.counts))
            found[present] += torch.cat([own[1:] for own in rows])  # without class tokens
    return found


def layer_slopes(heads: Heads, gradient: Tensor, maps: Sequence[Tensor]) -> Tensor:
    """The slope of each row by its presence in one layer, ``(ΣN,)`` float32.

    Args:
        gradient: of the layer's answer, ``(ΣN, heads, d)``.
        maps: what :func:`~spit.backbone.attention_maps` returns.
    """
    value, answer, slope = heads.value.float(), heads.answer.float(), gradient.float()
    told = torch.cat([slope, (slope * answer).sum(2, keepdim=True)], dim=2)  # (ΣN, heads, d + 1)
    heard = torch.cat([(attention.transpose(1, 2) @ own.transpose(0, 1)).transpose(0, 1)
                       for attention, own in zip(maps, told.split([one.shape[1] for one in maps]), strict=True)])
    found: Tensor = ((heard[..., :-1] * value).sum(2) - heard[..., -1]).sum(1)
    return found
