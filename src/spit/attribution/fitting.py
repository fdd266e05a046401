"""Prototypes of a model's classes from images, a batch at a time."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.attribution.clusters import fit_centroids
from spit.attribution.prototypes import Prototypes, weights_digest
from spit.data.crops import central_square
from spit.data.folders import image_paths
from spit.data.images import load_image
from spit.images import Images
from spit.model import SpitModel

COUNT = 5
ORTHOGONALITY = 0.1  # λ_ν of App. D

Source = str | os.PathLike[str] | Tensor | Iterable[Images]


@torch.no_grad()
def fit_prototypes(model: SpitModel, images: Source, labels: Sequence[int] | Tensor | None = None,
                   count: int = COUNT, orthogonality: float = ORTHOGONALITY, size: int = 224, batch: int = 32,
                   progress: Callable[[int], None] = lambda images: None) -> Prototypes:
    """Five centroids of the class token for each class, by k-means with the term J(ν) (App. D).

    Images are seen a batch at a time; of each only its class token stays, in half precision. Class tokens
    are scaled to unit length first: J asks for unit length, and the paper does not say how a token of length
    14 is to come by it. A class without any image gets its row of the head, the direction its logit measures.

    Args:
        model: any model of ours with classes, in evaluation mode.
        images: a folder, searched at any depth in the order of :func:`spit.data.folders.image_paths`, of which the
            central squares are seen; one tensor; or batches of images, one after another.
        labels: the class of each image; None for the classes that the model itself sees.
        count: prototypes of a class.
        orthogonality: λ_ν.
        size, batch: side of the square, and images at a time, of a folder or a tensor.
        progress: called after every batch with the images seen so far.

    Raises:
        ValueError: a model in training mode or without classes, no images, or labels that do not fit.
        ImageError: no such folder, or an image that cannot be read.
    """
    from spit import __version__  # spit itself imports this module

    classes = model.config.num_classes
    if model.training or model.head.linear is None:
        raise ValueError("expected a model with classes in evaluation mode; call model.eval(), or make it with "
                         "num_classes")
    tokens, predicted, seen = [], [], 0
    for pixels in _batches(images, size, batch):
        output = model(_moved(pixels, model), record=())
        tokens.append(F.normalize(output.class_token.float(), dim=1).half())
        predicted.append(output.logits.argmax(1))
        seen += len(output.logits)
        progress(seen)
    if not tokens:
        raise ValueError("expected images to make prototypes from, got none")
    own = torch.cat(predicted) if labels is None else _checked(labels, seen, classes).to(tokens[0].device)
    values = fit_centroids(torch.cat(tokens).float(), own, classes, count, orthogonality)
    counts = torch.bincount(own, minlength=classes)
    rows = F.normalize(model.head.linear.weight.float(), dim=1)[:, None]
    values = torch.where((counts > 0)[:, None, None], values, rows)
    about = {"weights": weights_digest(model), "tokenizer": model.config.tokenizer, "images": seen,
             "labels": "the model's own" if labels is None else "given", "orthogonality": orthogonality,
             "classes_without_images": int((counts == 0).sum()), "spit": __version__}
    return Prototypes(values.half().float().cpu(), counts.cpu(), about)


def _batches(images: Source, size: int, batch: int) -> Iterator[Images]:
    if isinstance(images, Tensor):
        yield from (images[None] if images.ndim == 3 else images).split(batch)
    elif isinstance(images, str | os.PathLike):
        paths = image_paths(images)
        for start in range(0, len(paths), batch):
            yield torch.stack([central_square(load_image(path), size) for path in paths[start : start + batch]])
    else:
        yield from images


def _moved(images: Images, model: SpitModel) -> Images:
    device = model.embedder.class_token.device
    return images.to(device) if isinstance(images, Tensor) else [image.to(device) for image in images]


def _checked(labels: Sequence[int] | Tensor, images: int, classes: int) -> Tensor:
    given = torch.as_tensor(labels)
    if given.is_floating_point() or given.shape != (images,):
        raise ValueError(f"expected an integer label for each of {images} images, got {given.dtype} of shape "
                         f"{tuple(given.shape)}")
    if bool(((given < 0) | (given >= classes)).any()):
        raise ValueError(f"expected labels from 0 to {classes - 1}, got {int(given.min())} to {int(given.max())}")
    return given.long()
