"""A linear head fitted on frozen class tokens: logistic regression with a chosen L2 penalty."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

PENALTIES = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)  # from the strongest, each fit beginning where the last ended
HELD_OUT = 5  # every fifth image of a class chooses among them
STEPS = 200


@dataclass(frozen=True)
class LinearHead:
    """Class tokens to logits.

    Attributes:
        mean, scale: of the training tokens; a token is standardised first.
        weight, bias: of the logits.
        penalty: the L2 penalty that was chosen.

    Shape:
        mean, scale ``(D,)``, weight ``(classes, D)``, bias ``(classes,)``; all float64.
    """

    mean: Tensor
    scale: Tensor
    weight: Tensor
    bias: Tensor
    penalty: float

    def __call__(self, tokens: Tensor) -> Tensor:
        """The logits of class tokens, ``(B, D)`` to ``(B, classes)``."""
        return F.linear((tokens.double() - self.mean) / self.scale, self.weight, self.bias)


def fit_linear(tokens: Tensor, labels: Tensor, classes: int, penalties: Sequence[float] = PENALTIES) -> LinearHead:
    """Fit a head, its penalty chosen on a held-out fifth of each class, then on all the images.

    The loss is ``mean cross-entropy + penalty/2 · ‖weight‖²`` over standardised tokens, the bias free. It is
    convex and minimised by L-BFGS on the whole set in double precision, from zero: nothing is random. Of
    penalties that are equally good the strongest is taken. Where no class has an image to hold out, the
    strongest penalty stands.

    Shape:
        tokens ``(M, D)``, labels ``(M,)`` int64.

    Raises:
        ValueError: no tokens, or no penalty above 0.
    """
    penalties = sorted(penalties, reverse=True)
    if len(tokens) < 1 or not penalties or penalties[-1] <= 0:
        raise ValueError(f"expected training images and penalties above 0, got {len(tokens)} and {penalties}")
    tokens = tokens.double()
    held = hold_out(labels)
    best = penalties[0]
    if len(penalties) > 1 and held.any():
        most = -1
        start = None
        for penalty in penalties:
            head = start = _fit(tokens[~held], labels[~held], classes, penalty, start)
            right = int((head(tokens[held]).argmax(1) == labels[held]).sum())
            if right > most:
                best, most = penalty, right
    return _fit(tokens, labels, classes, best, None)


def hold_out(labels: Tensor, every: int = HELD_OUT) -> Tensor:
    """Which images choose the penalty: of each class the fifth, the tenth and so on.

    Shape:
        ``(M,)`` int64 to ``(M,)`` bool.
    """
    order = labels.argsort(stable=True)
    ordered = labels[order]
    first = torch.searchsorted(ordered, ordered)  # where the image's class begins
    rank = torch.arange(len(labels), device=labels.device) - first
    return torch.empty_like(labels, dtype=torch.bool).index_copy(0, order, rank % every == every - 1)


def _fit(tokens: Tensor, labels: Tensor, classes: int, penalty: float, start: LinearHead | None) -> LinearHead:
    mean = tokens.mean(0)
    scale = tokens.std(0, correction=0)
    scale = torch.where(scale > 1e-8, scale, 1.0)  # a constant column says nothing and stays 0
    inputs = (tokens - mean) / scale
    weight = tokens.new_zeros(classes, tokens.shape[1]) if start is None else start.weight.clone()
    bias = tokens.new_zeros(classes) if start is None else start.bias.clone()
    parameters = [weight.requires_grad_(), bias.requires_grad_()]
    optimizer = torch.optim.LBFGS(parameters, max_iter=STEPS, tolerance_grad=1e-5, tolerance_change=1e-9,
                                  history_size=20, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(F.linear(inputs, weight, bias), labels) + penalty / 2 * weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(loss)
    return LinearHead(mean, scale, weight.detach(), bias.detach(), penalty)
