"""Heads over frozen class tokens: nearest neighbours (§3.1; DINO's protocol), and logistic regression."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 4096  # queries at once, so that a million training images fit beside them
PENALTIES = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)  # from the strongest, each fit beginning where the last ended
HELD_OUT = 5  # every fifth image of a class chooses among them
STEPS = 200


def knn_scores(train: Tensor, labels: Tensor, queries: Tensor, classes: int, neighbors: int,
               temperature: float) -> Tensor:
    """How strongly the nearest training images vote for each class.

    Each of the ``neighbors`` images most alike by cosine, or all if there are fewer, gives its class
    ``exp(cosine / temperature)``.

    Shape:
        train ``(M, D)``, labels ``(M,)`` int64, queries ``(B, D)``; scores ``(B, classes)``.
    """
    if len(train) < 1 or neighbors < 1 or not temperature > 0:
        raise ValueError(f"expected training images, neighbors of at least 1 and a temperature above 0, got "
                         f"{len(train)} images, neighbors={neighbors} and temperature={temperature}")
    train, neighbors = F.normalize(train.float(), dim=1), min(neighbors, len(train))
    scores = []
    for chunk in F.normalize(queries.float(), dim=1).split(CHUNK):
        cosines, places = (chunk @ train.T).topk(neighbors, dim=1)  # (b, k)
        votes = ((cosines - 1) / temperature).exp()  # the same ranking as without the 1, which could overflow
        scores.append(votes.new_zeros(len(chunk), classes).scatter_add_(1, labels[places], votes))
    return torch.cat(scores)


@dataclass(frozen=True)
class LinearHead:
    """Class tokens to logits, after they are standardised; ``penalty`` is the L2 penalty that was chosen.

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
    """Choose a penalty on a held-out fifth of each class, then fit a head on all images.

    The loss is ``mean cross-entropy + penalty/2 · ‖weight‖²`` over standardised tokens, the bias free. It is convex and
    minimised by L-BFGS on the whole set in double precision, from zero: nothing is random. Of penalties that are
    equally good, or if no class has an image to hold out, the strongest is taken.

    Shape:
        tokens ``(M, D)``, labels ``(M,)`` int64.
    """
    penalties = sorted(penalties, reverse=True)
    if len(tokens) < 1 or not penalties or penalties[-1] <= 0:
        raise ValueError(f"expected training images and penalties above 0, got {len(tokens)} and {penalties}")
    tokens, held = tokens.double(), hold_out(labels)
    best, most, head = penalties[0], -1, None
    for penalty in penalties if len(penalties) > 1 and held.any() else ():
        head = _fit(tokens[~held], labels[~held], classes, penalty, head)
        right = int((head(tokens[held]).argmax(1) == labels[held]).sum())
        if right > most:
            best, most = penalty, right
    return _fit(tokens, labels, classes, best, None)


def hold_out(labels: Tensor) -> Tensor:
    """Which images choose the penalty: of each class the fifth, the tenth and so on, ``(M,)`` bool."""
    order = labels.argsort(stable=True)
    ordered = labels[order]
    first = torch.searchsorted(ordered, ordered)  # where the image's class begins
    rank = torch.arange(len(labels), device=labels.device) - first
    return torch.empty_like(labels, dtype=torch.bool).index_copy(0, order, rank % HELD_OUT == HELD_OUT - 1)


def _fit(tokens: Tensor, labels: Tensor, classes: int, penalty: float, start: LinearHead | None) -> LinearHead:
    mean, scale = tokens.mean(0), tokens.std(0, correction=0)
    scale = torch.where(scale > 1e-8, scale, 1.0)  # a constant column says nothing and stays 0
    inputs = (tokens - mean) / scale
    weight = tokens.new_zeros(classes, tokens.shape[1]) if start is None else start.weight.clone()
    bias = tokens.new_zeros(classes) if start is None else start.bias.clone()
    optimizer = torch.optim.LBFGS([weight.requires_grad_(), bias.requires_grad_()], max_iter=STEPS, tolerance_grad=1e-5,
                                  tolerance_change=1e-9, history_size=20, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(F.linear(inputs, weight, bias), labels) + penalty / 2 * weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(loss)
    return LinearHead(mean, scale, weight.detach(), bias.detach(), penalty)
