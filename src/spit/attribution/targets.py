"""The class that an explanation is of."""

from collections.abc import Sequence

import torch
from torch import Tensor

from spit.model import SpitModel
from spit.tokens import plural

Target = int | Sequence[int] | Tensor | None
"""One class for all images, one for each, or None for the predicted ones."""


def read_target(model: SpitModel, images: int, target: Target) -> Tensor | None:
    """A class for each image, ``(B,)`` int64 on the model's device, or None.

    Raises:
        TypeError: not integers.
        ValueError: as many classes as neither one nor the images, or one that the model does not have.
    """
    if target is None:
        return None
    wrong = TypeError(f"expected a target class as an integer, or one for each image, got {target!r}; "
                      "spit.data.classes.imagenet_classes().index(name) is the number of a name")
    try:
        classes = torch.as_tensor(target, device=model.embedder.class_token.device)
    except (TypeError, ValueError) as error:
        raise wrong from error
    if classes.is_floating_point() or classes.is_complex() or classes.dtype == torch.bool:
        raise wrong
    if classes.ndim > 1 or (classes.ndim == 1 and len(classes) != images):
        raise ValueError(f"expected one target class, or one for each of {plural(images, 'image')}, "
                         f"got shape {tuple(classes.shape)}")
    known = model.config.num_classes
    if bool(((classes < 0) | (classes >= known)).any()):
        raise ValueError(f"expected target classes from 0 to {known - 1}, got {target}")
    return classes.to(torch.int64).expand(images)


def choose_classes(logits: Tensor, target: Tensor | None) -> Tensor:
    """The target, or where there is none the class of each image's largest logit, ``(B,)``."""
    return logits.argmax(1) if target is None else target
