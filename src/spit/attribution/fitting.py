"""Prototypes of a model's classes, made from images: k-means inside each class (App. D)."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.attribution.methods import read_classes
from spit.attribution.prototypes import Prototypes
from spit.data.folders import image_paths
from spit.model import SpitModel
from spit.predictor import Predictor, Sources

ROUNDS, STEPS, RATE = 20, 25, 0.1  # of k-means, and of gradient descent in a round

Source = str | os.PathLike[str] | Tensor | Iterable[Sources]


@torch.no_grad()
def fit_prototypes(model: SpitModel | Predictor, images: Source, labels: Sequence[int] | Tensor | None = None,
                   count: int = 5, orthogonality: float = 0.1, size: int = 224, batch: int = 32,
                   progress: Callable[[int], None] = lambda images: None) -> Prototypes:
    """Make prototypes: centroids of the class token for each class, by k-means with the term J(ν) (App. D).

    Class tokens are scaled to unit length first, which the paper does not say: J asks for unit length, and class tokens
    of ``spit_tiny_16`` have a length of about 22. The means of unit vectors that result have lengths of about 0.9. A
    class without images gets its row of the head, the direction that its logit measures.

    Args:
        model: with classes, in evaluation mode.
        images: a folder, searched at any depth; a tensor; or batches of images or of paths.
        labels: the class of each image (default: the predicted ones).
        count: prototypes of a class.
        orthogonality: λ_ν of App. D.
        size: side of the central square of images that are read from files.
        batch: images in a batch, of a folder or a tensor.
        progress: called after each batch with the number of images done.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import fit_prototypes
        >>> model = spit.create_model("vit_tiny_16", num_classes=3)
        >>> fit_prototypes(model, torch.rand(4, 3, 32, 32), labels=[0, 0, 1, 2]).counts
        tensor([2, 1, 1])
    """
    from spit import __version__  # spit itself imports this module

    predictor = Predictor.of(model)
    predictor.expect_classes()
    if predictor.model.head.linear is None:
        raise ValueError(f"expected a model whose head is one linear layer, got {predictor.name}")
    head, classes = predictor.model.head.linear.weight, predictor.model.config.num_classes
    tokens, predicted, seen = [], [], 0
    for some in _batches(images, batch):
        one = some[0] if isinstance(some, list | tuple) and some else some
        cropped = isinstance(one, str | os.PathLike)
        prediction = predictor(some, crop=cropped, size=size if cropped else None)
        tokens.append(F.normalize(prediction.class_token.float(), dim=1).half())
        predicted.append(prediction.logits.argmax(1))
        seen += len(prediction)
        progress(seen)
    if not tokens:
        raise ValueError("expected images to make prototypes from, got none")
    own = torch.cat(predicted) if labels is None else read_classes(labels, seen, predictor.class_names).to(head.device)
    values = fit_centroids(torch.cat(tokens).float(), own, classes, count, orthogonality)
    counts = torch.bincount(own, minlength=classes)
    rows = F.normalize(head.float(), dim=1)[:, None]
    values = torch.where((counts > 0)[:, None, None], values, rows)
    about = {"weights": predictor.digest, "tokenizer": predictor.model.config.tokenizer, "images": seen,
             "labels": "the model's own" if labels is None else "given", "orthogonality": orthogonality,
             "classes_without_images": int((counts == 0).sum()), "spit": __version__}
    return Prototypes(values.half().float().cpu(), counts.cpu(), about)


def _batches(images: Source, batch: int) -> Iterator[Any]:
    if isinstance(images, Tensor):
        yield from (images[None] if images.ndim == 3 else images).split(batch)
    elif isinstance(images, str | os.PathLike):
        paths = image_paths(images)
        yield from (paths[start : start + batch] for start in range(0, len(paths), batch))
    else:
        yield from images


def fit_centroids(points: Tensor, labels: Tensor, classes: int, count: int, orthogonality: float) -> Tensor:
    """``count`` centroids for each class that minimise the mean squared distance of its points plus J(ν).

    ``J(ν) = λ_ν / C Σ_c ‖I − ν_cᵀ ν_c‖²`` (Frobenius) pulls the centroids of a class to unit length and makes them
    orthogonal. Assigning points to the nearest centroid of their class alternates with gradient descent on both terms.
    The first centroid is the point nearest to the class's mean; each further one is the point farthest from those
    before, so nothing is random. A centroid without points is pulled to the class's mean with the weight of one point.

    Shape:
        points ``(n, D)`` of unit length, so that J is on their scale, to ``(classes, count, D)``; 0 for a class without
        points.
    """
    sizes = torch.bincount(labels, minlength=classes).to(points.dtype)
    means = _means(points, labels, classes)
    centroids = _farthest_first(points, labels, means, count)
    identity = torch.eye(count, dtype=points.dtype, device=points.device)
    for _ in range(ROUNDS):
        nearest = torch.cdist(points[:, None], centroids[labels])[:, 0].argmin(1)
        slots = labels * count + nearest
        held = torch.bincount(slots, minlength=classes * count).view(classes, count)
        targets = _means(points, slots, classes * count).view(classes, count, -1)
        targets = torch.where((held > 0)[..., None], targets, means[:, None])
        shares = (held.clamp(min=1) / sizes.clamp(min=1)[:, None])[..., None]
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
