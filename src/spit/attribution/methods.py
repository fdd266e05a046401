"""Methods of attribution by name, and :func:`spit.explain`, which runs any of them."""

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
from spit.model import SpitModel
from spit.options import Options, documented, option
from spit.predictor import Maps, Prediction, Predictor, Sources
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


def explain(model: SpitModel | Predictor, images: Sources, method: str | Method = "relevance",
            target: Target = None) -> Maps:
    """Which pixels a prediction rests on (§3.2, App. D).

    ============  ====================================================================  ===========
    method        a pixel's value                                                       of a class?
    ============  ====================================================================  ===========
    "relevance"   its token's share by attention times gradient                         yes
    "token_rise"  how much likelier the class is where its token is present             yes
    "lime"        the coefficient of its SLIC region in a linear model                  yes
    "prototype"   what its token adds to the class token towards the class's            yes
                  prototypes
    "flow"        its token's share of the class token's attention through the layers   no
    "rollout"     the same, by the mean over heads and half the residual                no
    "random"      a random value for its token, a control                               no
    ============  ====================================================================  ===========

    Values are comparable within a map; their scale has no meaning. Every pixel has the value of its token, or region,
    without interpolation. A map depends on its own image alone. For several maps of one image, call
    :meth:`spit.Prediction.explain`, which runs the model once.

    Args:
        model: in evaluation mode.
        images: what :class:`spit.Predictor` takes, whole, of any size; not modified.
        method: a name, or a method with options, such as ``spit.attribution.Lime(samples=1000)`` or
            ``spit.attribution.PrototypeProjection("prototypes.safetensors")``.
        target: the class to explain, by index or name, one for all images or one for each (default: the predicted
            class).

    Shape:
        ``(B, H, W)`` float32, or one ``(H, W)`` an image if sizes differ.

    Raises:
        MissingExtra: "lime" without captum or scikit-image.
        WeightsError: "prototype" for a model that has no prototypes yet.

    Example:
        >>> import spit, torch
        >>> model = spit.create_model("spit_tiny_16", pretrained=True)
        >>> spit.explain(model, torch.rand(1, 3, 64, 64), "relevance", target="tabby").shape
        torch.Size([1, 64, 64])
    """
    predictor = Predictor.of(model)
    chosen = _method(method, predictor)  # refuses an unknown one before the pass
    return explain_prediction(predictor(images, crop=False), chosen, target)


def explain_prediction(prediction: Prediction, method: str | Method, target: Target) -> Maps:
    """:func:`explain` for images that the model has seen."""
    chosen = _method(method, prediction.predictor)
    if target is None and not chosen.of_class:
        classes = torch.zeros(len(prediction), dtype=torch.int64)  # unused; the model may have none
    else:
        classes = read_target(prediction, target)
    parts = classes.split([len(one.images) for one in prediction.passes])
    maps = [values for one, own in zip(prediction.passes, parts, strict=True) for values in chosen(one, own)]
    return prediction.join([values.to(torch.float32) for values in maps])


def _method(method: str | Method, predictor: Predictor) -> Method:
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
