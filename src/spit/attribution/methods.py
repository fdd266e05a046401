"""``spit.explain``: one call for every method of attribution."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Protocol

import torch
from torch import Tensor

from spit.attribution.control import RandomControl
from spit.attribution.flow import Flow, Rollout
from spit.attribution.lime import Lime, check_lime
from spit.attribution.projection import PrototypeProjection
from spit.attribution.prototypes import find_prototypes
from spit.attribution.relevance import Relevance
from spit.attribution.targets import Target, read_target
from spit.errors import MissingExtra, SpitError, WeightsError
from spit.images import Images, image_blocks
from spit.model import SpitModel


class Method(Protocol):
    """A method of attribution: a name, and maps from a model, images of one size and their classes."""

    @property
    def name(self) -> str: ...

    @property
    def of_class(self) -> bool:
        """Whether another class has another map."""
        ...

    def config(self) -> dict[str, Any]:
        """All that a map depends on beside model and image, as JSON has it."""
        ...

    def __call__(self, model: SpitModel, images: Tensor, target: Tensor | None = None) -> Tensor:
        """``(B, C, H, W)`` and ``(B,)`` classes, or None for the predicted ones, to ``(B, H, W)``."""
        ...


METHODS: dict[str, type[Any]] = {
    method.name: method for method in (Flow, Rollout, PrototypeProjection, Lime, RandomControl, Relevance)
}


def explain(model: SpitModel, images: Images, method: str | Method = "flow",
            target: Target = None) -> Tensor | tuple[Tensor, ...]:
    """Which pixels a prediction rests on (§3.2, App. D).

    ============  =========================================================================  ===========
    method        a pixel's value                                                            of a class?
    ============  =========================================================================  ===========
    "flow"        its token's share of the class token's attention through all layers        no
    "rollout"     the same, by the mean over heads and half the residual                     no
    "prototype"   its token on the first principal component of tokens and prototypes        yes
    "lime"        the coefficient of its SLIC region in a linear model of the probability    yes
    "relevance"   its token's share by attention times gradient                              yes
    "random"      a random value for its token, a control                                    no
    ============  =========================================================================  ===========

    Values are comparable within a map; their scale means nothing. Every pixel has the value of its token,
    or region, without interpolation. A map depends on its own image alone.

    Args:
        model: any model of ours, in evaluation mode.
        images: never modified. Images of different sizes are explained size by size.
        method: a name, or a method made with options, such as ``spit.attribution.Lime(samples=1000)`` or
            ``spit.attribution.PrototypeProjection("prototypes.safetensors")``.
        target: the class to explain, one for all images or one for each; the predicted one unless told.

    Shape:
        ``(B, H, W)`` float32, or one ``(H, W)`` an image where sizes differ.

    Raises:
        TypeError, ValueError: a model in training mode, an unknown method or class, or images that the
            model refuses.
        MissingExtra: "lime" without captum or scikit-image.
        WeightsError: "prototype" for a model that has no prototypes yet.
    """
    chosen = create_method(method) if isinstance(method, str) else method
    if not callable(chosen):
        raise TypeError(f"expected a method by name ({', '.join(METHODS)}) or a method object, got {method!r}")
    if model.training:
        raise ValueError("expected a model in evaluation mode, since training drops tokens and layers at random; "
                         "call model.eval()")
    # A batch is checked by the model; to look at it twice would have a GPU wait twice.
    blocks = (images,) if isinstance(images, Tensor) and images.ndim == 4 else image_blocks(images)
    classes = read_target(model, sum(len(block) for block in blocks), target)
    maps, first = [], 0
    for block in blocks:
        own = None if classes is None else classes[first : first + len(block)]
        maps.append(chosen(model, block.detach(), own).to(torch.float32))
        first += len(block)
    return maps[0] if len(maps) == 1 else tuple(image for block in maps for image in block)


def create_method(name: str, **options: Any) -> Method:
    """A method by name.

    Raises:
        ValueError: an unknown name; the known ones are named, and the nearest where one is near.
    """
    if name not in METHODS:
        near = difflib.get_close_matches(str(name), METHODS, n=1, cutoff=0.7)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"expected a method among {', '.join(METHODS)}, got {name!r}{hint}")
    method: Method = METHODS[name](**options)
    return method


def choose_methods(model: SpitModel, names: Sequence[str] | None = None, samples: int = 256,
                   prototypes: Iterable[str | PathLike[str]] = (),
                   left_out: Callable[[str, SpitError], None] = lambda name, error: None) -> list[Method]:
    """Methods made for one model, with its own prototypes.

    Args:
        names: in this order, each once; unless told those of Fig. 1 that can be had here: flow, prototype where the
            model has prototypes, lime where captum is installed.
        samples: LIME's masks.
        prototypes: files to look for the model's prototypes in.
        left_out: called with each of Fig. 1's that cannot be had, and why, where no names were told.

    Raises:
        ValueError: an unknown name.
        MissingExtra, WeightsError: a method that was asked for cannot be had.
    """
    def make(name: str) -> Method:
        if name == "prototype":
            return PrototypeProjection(find_prototypes(model, prototypes))
        if name == "lime":
            check_lime()
            return Lime(samples=samples)
        return create_method(name)

    if names is not None:
        return [make(name) for name in dict.fromkeys(names)]
    found = []
    for name in ("flow", "prototype", "lime"):
        try:
            found.append(make(name))
        except (MissingExtra, WeightsError) as error:
            left_out(name, error)
    return found
