"""Prototypes of a model's classes, made from images."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.attribution.clusters import fit_centroids
from spit.attribution.prototypes import Prototypes
from spit.data.folders import image_paths
from spit.images import Images
from spit.model import SpitModel
from spit.predictor import Predictor

COUNT = 5
ORTHOGONALITY = 0.1  # λ_ν of App. D

Source = str | os.PathLike[str] | Tensor | Iterable[Images]


@torch.no_grad()
def fit_prototypes(model: SpitModel | Predictor, images: Source, labels: Sequence[int] | Tensor | None = None,
                   count: int = COUNT, orthogonality: float = ORTHOGONALITY, size: int = 224, batch: int = 32,
                   progress: Callable[[int], None] = lambda images: None) -> Prototypes:
    """Make prototypes: centroids of the class token for each class, by k-means with the term J(ν) (App. D).

    Class tokens are scaled to unit length first, which the paper does not say: J asks for unit length, and tokens have
    a length of about 14. A class without images gets its row of the head, the direction that its logit measures.

    Args:
        model: with classes, in evaluation mode.
        images: a folder, searched at any depth, of images to crop; a tensor; or batches of images.
        labels: the class of each image (default: the predicted ones).
        count: prototypes of a class.
        orthogonality: λ_ν.
        size: side of the central square of a folder's images.
        batch: images in a batch, of a folder or a tensor.
        progress: called after each batch with the number of images done.

    Raises:
        ValueError: a model in training mode or without classes, no images, or labels that do not fit.
        ImageError: no such folder, or an image that cannot be read.

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
    head, classes = predictor.model.get_parameter("head.linear.weight"), predictor.model.config.num_classes
    tokens, predicted, seen = [], [], 0
    for some in _batches(images, batch):
        prediction = predictor(some, size=size if isinstance(some, list) and isinstance(some[0], os.PathLike) else None)
        tokens.append(F.normalize(prediction.class_token.float(), dim=1).half())
        predicted.append(prediction.logits.argmax(1))
        seen += len(prediction)
        progress(seen)
    if not tokens:
        raise ValueError("expected images to make prototypes from, got none")
    own = torch.cat(predicted) if labels is None else _checked(labels, seen, classes).to(tokens[0].device)
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


def _checked(labels: Sequence[int] | Tensor, images: int, classes: int) -> Tensor:
    given = torch.as_tensor(labels)
    if given.is_floating_point() or given.shape != (images,):
        raise ValueError(f"expected an integer label for each of {images} images, got {given.dtype} of shape "
                         f"{tuple(given.shape)}")
    if bool(((given < 0) | (given >= classes)).any()):
        raise ValueError(f"expected labels from 0 to {classes - 1}, got {int(given.min())} to {int(given.max())}")
    return given.long()
