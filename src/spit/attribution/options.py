"""Which methods of attribution to run, and their options."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from spit.errors import WeightsError
from spit.options import Options, check_choice, documented, option

if TYPE_CHECKING:
    from spit.attribution.methods import Method
    from spit.model import SpitModel
    from spit.predictor import Predictor

NAMES = ("relevance", "token_rise", "lime", "prototype", "flow", "rollout", "random")
REPLACED = dict.fromkeys(("token_shapley", "token_occlusion"), "token_rise takes its place")
DEFAULTS = ("relevance", "prototype", "flow")  # what spit explain shows; each takes a few passes at most
Omission = Literal["omit", "keep"]  # of LIME's regions
Removal = Literal["pixels", "tokens"]
Form = Literal["class", "paper"]  # of prototypes' maps


def check_method(name: str) -> None:
    """Raise ValueError for a name that is no method's; of one that was removed, name what takes its place."""
    check_choice("method", name, NAMES, REPLACED.get(name, ""))


@documented
@dataclass(frozen=True)
class MethodOptions(Options):
    """Which methods to run, for the commands that run several."""

    method: tuple[str, ...] = option(
        (), f"{', '.join(NAMES)}; repeat the option or separate names with commas", metavar="NAME")
    samples: int = option(256, "Most passes per image, for lime and token_rise", least=1)
    lime_p: Omission = option(
        "omit", "LIME: whether p, 0.1 to 0.3, is the probability that a region is omitted or kept")
    lime_remove: Removal = option(
        "pixels", "LIME: paint omitted pixels in the mean colour, or drop their tokens")
    flow_skip: int | None = option(
        None, "Flow: last layers to leave out (default: a sixth of all; the paper's flow has 0)", least=0)
    prototypes: tuple[Path, ...] = option(
        (), "File that spit prototypes wrote; each model takes those of its own weights (default: those that come with "
            "spit)", metavar="FILE")
    prototype_form: Form = option(
        "class", "Prototype: class for a map that depends on the class, paper for App. D's principal component, which "
                 "hardly does")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.names:
            check_method(name)

    @property
    def names(self) -> list[str]:
        """The methods that were asked for, each once."""
        return [*dict.fromkeys(name for names in self.method for name in names.split(","))]

    def methods_for(self, model: "SpitModel | Predictor", left_out: dict[str, str] | None = None) -> "list[Method]":
        """The methods for a model, with its own prototypes.

        By default relevance, prototype if the model has prototypes, and flow. ``left_out`` then gets the names of the
        others, each with the reason.
        """
        if self.names:
            return [self._make(name, model) for name in self.names]
        found = []
        for name in DEFAULTS:
            try:
                found.append(self._make(name, model))
            except WeightsError as error:
                if left_out is not None:
                    left_out[name] = str(error)
        return found

    def check_prototypes(self, models: "Iterable[SpitModel | Predictor]") -> None:
        """Raise WeightsError if a file of prototypes belongs to none of the models."""
        from spit.attribution.prototypes import HOW, load_prototypes
        from spit.predictor import Predictor

        weights = {Predictor.of(model).digest for model in models} if self.prototypes else set()
        for path in self.prototypes:
            if load_prototypes(path).about.get("weights") not in weights:
                raise WeightsError(f"{path} has prototypes of other weights than the given models'; {HOW}")

    def _make(self, name: str, model: "SpitModel | Predictor") -> "Method":
        from spit.attribution.lime import check_lime
        from spit.attribution.methods import create_method
        from spit.attribution.prototypes import find_prototypes

        if name == "prototype":
            return create_method(name, prototypes=find_prototypes(model, self.prototypes), form=self.prototype_form)
        if name == "lime":
            check_lime()
            return create_method(name, samples=self.samples, p=self.lime_p, remove=self.lime_remove)
        if name == "flow":
            return create_method(name, skip=self.flow_skip)
        return create_method(name, **({"samples": self.samples} if name == "token_rise" else {}))
