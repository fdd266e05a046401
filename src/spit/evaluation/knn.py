"""Classes by the nearest neighbours of class tokens (§3.1; DINO's protocol)."""

import torch
from torch import Tensor
from torch.nn import functional as F

NEIGHBORS = 20
TEMPERATURE = 0.07
CHUNK = 4096  # queries at once, so that a million training images fit beside them


def knn_scores(train: Tensor, labels: Tensor, queries: Tensor, classes: int, neighbors: int = NEIGHBORS,
               temperature: float = TEMPERATURE) -> Tensor:
    """How strongly the nearest training images vote for each class.

    Each of the ``neighbors`` images most alike by cosine gives its class ``exp(cosine / temperature)``.

    Args:
        train, labels: class tokens of training images and their classes.
        queries: class tokens to classify.
        neighbors: k; all training images where there are fewer.

    Shape:
        train ``(M, D)``, labels ``(M,)`` int64, queries ``(B, D)``; scores ``(B, classes)``.

    Raises:
        ValueError: no training images, no neighbours, or a temperature that is not positive.
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
    return torch.cat(scores) if scores else train.new_zeros(0, classes)
