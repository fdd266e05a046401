"""k-means inside each class, with a term that keeps centroids apart (App. D)."""

import torch
from torch import Tensor

ROUNDS, STEPS, RATE = 20, 25, 0.1


def fit_centroids(points: Tensor, labels: Tensor, classes: int, count: int, orthogonality: float) -> Tensor:
    """``count`` centroids for each class that minimise the mean squared distance of its points plus J(ν).

    ``J(ν) = λ_ν / C Σ_c ‖I − ν_cᵀ ν_c‖²`` (Frobenius) pulls the centroids of a class to unit length and makes them
    orthogonal. Assigning points to the nearest centroid of their class alternates with gradient descent on both terms.
    The first centroid is the point nearest to the class's mean; each further one is the point farthest from those
    before, so nothing is random. A centroid without points is pulled to the class's mean with the weight of one point.

    Args:
        points: unit vectors, so that J is on their scale.
        labels: the class of each point.
        orthogonality: λ_ν.

    Shape:
        points ``(n, D)`` float, labels ``(n,)`` to ``(classes, count, D)``, 0 for a class without points.
    """
    sizes = torch.bincount(labels, minlength=classes).to(points.dtype)
    means = _means(points, labels, classes)
    centroids = _farthest_first(points, labels, means, count)
    identity = torch.eye(count, dtype=points.dtype, device=points.device)
    floor = 1 / sizes.clamp(min=1)
    for _ in range(ROUNDS):
        nearest = torch.cdist(points[:, None], centroids[labels])[:, 0].argmin(1)
        slots = labels * count + nearest
        held = torch.bincount(slots, minlength=classes * count).view(classes, count)
        targets = _means(points, slots, classes * count).view(classes, count, -1)
        targets = torch.where((held > 0)[..., None], targets, means[:, None])
        shares = torch.maximum(held / sizes.clamp(min=1)[:, None], floor[:, None])[..., None]
        for _ in range(STEPS):
            excess = centroids @ centroids.transpose(1, 2) - identity  # νᵀν − I with centroids as rows
            slope = 2 * shares * (centroids - targets) + 4 * orthogonality * (excess @ centroids)
            centroids = centroids - RATE * slope
    return torch.where((sizes > 0)[:, None, None], centroids, torch.zeros_like(centroids))


def _farthest_first(points: Tensor, labels: Tensor, means: Tensor, count: int) -> Tensor:
    """The point nearest to the mean, then repeatedly the point of the class farthest from those chosen."""
    chosen = means[:, None].repeat(1, count, 1)
    order = labels.argsort(stable=True)
    sizes = torch.bincount(labels, minlength=len(means)).tolist()
    for label, rows in enumerate(order.split(sizes)):
        if len(rows) == 0:
            continue
        own = points[rows]
        place = (own - means[label]).square().sum(1).argmin()
        distance = torch.full((len(own),), torch.inf, dtype=points.dtype, device=points.device)
        for index in range(count):
            chosen[label, index] = own[place]
            distance = torch.minimum(distance, (own - own[place]).square().sum(1))
            place = distance.argmax()
    return chosen


def _means(points: Tensor, slots: Tensor, count: int) -> Tensor:
    sums = points.new_zeros(count, points.shape[1]).index_add(0, slots, points)
    return sums / torch.bincount(slots, minlength=count).clamp(min=1).to(points.dtype)[:, None]
