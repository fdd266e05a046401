"""The class to explain."""

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from spit.tokens import plural

if TYPE_CHECKING:
    from spit.predictor import Prediction

Target = int | str | Sequence[int | str] | Tensor | None
"""One class for all images, or one for each, by index or name; None for the predicted ones."""


def read_target(prediction: "Prediction", target: Target) -> Tensor:
    """A class for each image, ``(B,)`` int64.

    Raises:
        TypeError: neither integers nor names.
        ValueError: a model without a head, more or fewer classes than images, or a class that the model lacks.
    """
    prediction.predictor.expect_classes()
    names, images = prediction.predictor.class_names, len(prediction)
    if target is None:
        return prediction.logits.argmax(1)
    if isinstance(target, str):
        target = class_index(names, target)
    elif isinstance(target, Sequence):
        target = [class_index(names, one) if isinstance(one, str) else one for one in target]
    wrong = TypeError(f"expected a target class as an integer or a name, or one for each image, got {target!r}")
    try:
        classes = torch.as_tensor(target, device=prediction.logits.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise wrong from error
    if classes.is_floating_point() or classes.is_complex() or classes.dtype == torch.bool:
        raise wrong
    if classes.ndim > 1 or (classes.ndim == 1 and len(classes) != images):
        raise ValueError(f"expected one target class, or one for each of {plural(images, 'image')}, "
                         f"got shape {tuple(classes.shape)}")
    if bool(((classes < 0) | (classes >= len(names))).any()):
        raise ValueError(f"expected target classes from 0 to {len(names) - 1}, got {target}")
    return classes.to(torch.int64).expand(images)


def class_index(names: Sequence[str], target: str) -> int:
    """The index of a class by its name, or by its index as a string.

    Raises:
        ValueError: no such class, or several of that name; the message has the nearest names.
    """
    if target.isdecimal() and int(target) < len(names):
        return int(target)
    folded = [name.casefold() for name in names]
    found = [index for index, name in enumerate(folded) if name == target.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"target {target!r} is the name of classes {' and '.join(map(str, found))}; give the index")
    near = [name for name in folded if target.casefold() in name.split()][:4] or difflib.get_close_matches(
        target.casefold(), folded, n=1)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"expected target as a class from 0 to {len(names) - 1} or its name, got {target!r}{hint}")
