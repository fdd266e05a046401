"""Methods of attribution by name."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from spit.attribution.flow import Flow, Rollout
from spit.attribution.lime import Lime
from spit.attribution.options import NAMES, check_method
from spit.attribution.passes import image_generator
from spit.attribution.prototypes import PrototypeProjection
from spit.attribution.relevance import Relevance
from spit.attribution.token_rise import TokenRise
from spit.data.classes import near_names
from spit.forward_pass import ForwardPass
from spit.options import Options, documented, option
from spit.predictor import Prediction, Predictor
from spit.wording import plural

Target = int | str | Sequence[int | str] | Tensor | None
"""One class for all images, or one for each, by index or name; None for the predicted ones."""


class Method(Protocol):
    """A method of attribution."""

    name: ClassVar[str]
    of_class: ClassVar[bool]  # whether another class has another map

    def config(self) -> dict[str, Any]:
        """Everything that a map depends on beside model and image, as JSON has it."""
        ...

    def __call__(self, seen: ForwardPass, classes: Tensor) -> Sequence[Tensor]:
        """One ``(h, w)`` map for each image of a pass; ``classes``, ``(B,)``, are those to explain."""
        ...


@documented
@dataclass(frozen=True)
class RandomControl(Options):
    """Uniform random values, one for each of the model's tokens.

    They are drawn by token so that occlusion removes regions like those of other methods; random pixels would destroy
    every texture. They are in [0, 1) and depend on the image's pixels and the seed alone.

    Example:
        >>> import spit, torch
        >>> model = spit.create_model("vit_tiny_16")
        >>> spit.explain(model, torch.zeros(3, 32, 32), spit.attribution.RandomControl(seed=1)).unique().numel()
        4
    """

    name: ClassVar[str] = "random"
    of_class: ClassVar[bool] = False

    seed: int = option(0, "Seed of the random values")

    config = Options.to_dict

    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        values = [torch.rand(count, generator=image_generator(image, self.seed))
                  for count, image in zip(seen.partition.counts.tolist(), seen.images, strict=True)]
        return seen.paint(torch.cat(values).to(seen.logits.device))


METHODS: dict[str, type[Any]] = dict(zip(
    NAMES, (Relevance, TokenRise, Lime, PrototypeProjection, Flow, Rollout, RandomControl), strict=True))


def ready(method: str | Method, predictor: Predictor) -> Method:
    """A method by name or as it is, with the prototypes of a model."""
    chosen = create_method(method) if isinstance(method, str) else method
    if isinstance(chosen, type):
        raise TypeError(f"expected an instance, such as {chosen.__name__}(), got the class {chosen.__name__}")
    if not callable(chosen):
        raise TypeError(f"expected a method by name ({', '.join(METHODS)}) or a method object, got {method!r}")
    if isinstance(chosen, PrototypeProjection):  # finds its prototypes once, not for each image
        return replace(chosen, prototypes=chosen.load(predictor))
    return chosen


def read_target(prediction: Prediction, target: Target) -> Tensor:
    """The class to explain of each image, ``(B,)`` int64."""
    prediction.predictor.expect_classes()
    if target is None:
        return prediction.logits.argmax(1)
    classes = read_classes(target, len(prediction), prediction.predictor.class_names)
    return classes.to(prediction.logits.device)


def read_classes(given: Target, images: int, names: Sequence[str]) -> Tensor:
    """One class for all images, or one for each, by index or name, as ``(images,)`` int64."""
    if isinstance(given, str):
        given = class_index(names, given)
    elif isinstance(given, Sequence):
        given = [class_index(names, one) if isinstance(one, str) else one for one in given]
    wrong = TypeError(f"expected a class as an integer or a name, or one for each image, got {given!r}")
    try:
        classes = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise wrong from error
    if classes.is_floating_point() or classes.is_complex() or classes.dtype == torch.bool:
        raise wrong
    if classes.ndim > 1 or (classes.ndim == 1 and len(classes) != images):
        raise ValueError(f"expected one class, or one for each of {plural(images, 'image')}, "
                         f"got shape {tuple(classes.shape)}")
    if bool(((classes < 0) | (classes >= len(names))).any()):
        raise ValueError(f"expected classes from 0 to {len(names) - 1}, got {given}")
    return classes.to(torch.int64).expand(images)


def class_index(names: Sequence[str], target: str) -> int:
    """The index of a class by its name, or by its index as a string; ValueError if none or several have that name.

    A name that is a number comes before an index, and the given spelling before others.
    """
    found = [index for index, name in enumerate(names) if name == target]
    if not found and target.isdecimal() and int(target) < len(names):
        return int(target)
    found = found or [index for index, name in enumerate(names) if name.casefold() == target.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"target {target!r} is the name of classes {' and '.join(map(str, found))}; give the index")
    near = near_names(names, target)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"expected target as a class from 0 to {len(names) - 1} or its name, got {target!r}{hint}")


def create_method(name: str, **options: Any) -> Method:
    """A method by name.

    Example:
        >>> from spit.attribution import create_method
        >>> create_method("flow", strength=0.5)
        Flow(strength=0.5, merge='max', skip=None)
    """
    check_method(name)
    method: Method = METHODS[name](**options)
    return method
