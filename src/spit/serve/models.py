"""The models that the service has: those it was started with, and those whose weights come with spit."""

import threading
from collections.abc import Hashable
from itertools import count
from typing import Any

from spit.attribution.lime import Lime, check_lime
from spit.attribution.methods import METHODS, Method, create_method
from spit.attribution.prototypes import PrototypeProjection, find_prototypes
from spit.attribution.token_rise import TokenRise
from spit.devices import choose_device
from spit.errors import SpitError
from spit.interruption import may_stop
from spit.predictor import Predictor, load
from spit.registry import ARCHITECTURES, checkpoint_folder, list_models, model_config
from spit.serve.errors import ApiError
from spit.tokenizers import create_tokenizer

TOKENIZERS = ("superpixel", "patch", "voronoi")
MOST_VIEWS = 16  # models on other tokens that are kept; they share weights


class Models:
    """Predictors by name. A name never leads to a file that was not named when the service started.

    A model of a run, ``runs/mine/model``, has the name of the run, ``mine``; a second one is ``mine-2``.

    Args:
        sources: what :func:`spit.load` takes; the first is the default.
        device: where they run.
    """

    def __init__(self, sources: list[str], device: str) -> None:
        self.device = choose_device(device)
        self._lock = threading.RLock()
        self._predictors: dict[str, Predictor] = {}
        self._methods: dict[str, list[str]] = {}
        self._sources: dict[str, str] = {}
        self._views: dict[Hashable, Predictor] = {}
        for source in sources:
            predictor = self._load(source)
            own = predictor.name
            names = (f"{own}-{number}" if number > 1 else own for number in count(1))
            predictor.name = name = next(name for name in names if name not in self._sources)
            self._sources[name], self._predictors[name] = source, predictor
        self.default = next(iter(self._sources))
        known = {checkpoint_folder(source) for source in sources if source.partition(".")[0] in ARCHITECTURES}
        for name in list_models(pretrained=True):
            if checkpoint_folder(name) not in known:  # spit_tiny_16 is spit_tiny_16.deit_retrofit
                self._sources.setdefault(name, name)

    @property
    def names(self) -> list[str]:
        """Every name that a request may ask for, the default first."""
        return [*self._sources]

    def loaded(self, name: str) -> bool:
        """Whether a model has been used."""
        return name in self._predictors

    def get(self, name: str | None = None) -> Predictor:
        """The predictor of a name, loaded when it is first asked for."""
        name = self.check(name)
        with self._lock:
            if name not in self._predictors:
                self._predictors[name] = self._load(self._sources[name])
            return self._predictors[name]

    def check(self, name: str | None) -> str:
        """The name itself, or the default; ApiError if there is no such model."""
        if name is not None and name not in self._sources:
            raise ApiError("invalid_request", f"model: expected one of {', '.join(self._sources)}.")
        return name or self.default

    def choose(self, name: str | None, tokenizer: str | None = None, **options: Any) -> Predictor:
        """A predictor on other tokens; options that are None are the model's own."""
        predictor = self.get(name)
        config = predictor.model.config
        given = {key: value for key, value in options.items() if value is not None}
        kind = tokenizer or config.tokenizer
        if kind == config.tokenizer and not given:
            return predictor
        if kind != "superpixel" and given:
            raise ApiError("invalid_request", f"{next(iter(given))} belongs to superpixel tokens, not to {kind}.")
        asked = (predictor.name, kind, *sorted(given.items()))
        with self._lock:
            if asked not in self._views:
                try:
                    made = create_tokenizer(kind, **{**config.options_for(kind, {}), **given})
                except ValueError:
                    raise ApiError("invalid_request", "This model's tokens do not have these options.") from None
                while len(self._views) >= MOST_VIEWS:
                    self._views.pop(next(iter(self._views)))
                self._views[asked] = predictor.with_tokenizer(made)
            return self._views[asked]

    def methods(self, name: str | None = None) -> list[str]:
        """The methods of attribution that a model has and the installation can run."""
        predictor, found = self.get(name), []
        if predictor.name not in self._methods:
            for method in METHODS:
                try:
                    self.method(predictor, method)
                except ApiError:
                    continue
                found.append(method)
            self._methods[predictor.name] = found
        return self._methods[predictor.name]

    def describe(self) -> list[dict[str, Any]]:
        """What requests may name, and what each model is."""
        found = []
        for name, source in self._sources.items():
            config = self._predictors[name].model.config if name in self._predictors else model_config(source)
            found.append({"name": name, "default": name == self.default, "tokenizer": config.tokenizer,
                          "width": config.width, "layers": config.depth, "heads": config.heads,
                          "classes": config.num_classes, "methods": self.methods(name) if self.loaded(name) else None})
        return found

    def method(self, predictor: Predictor, name: str, samples: int | None = None) -> Method:
        """A method of attribution for a model; ApiError if it lacks something."""
        if name not in METHODS:
            raise ApiError("invalid_request", f"method: expected one of {', '.join(METHODS)}.")
        try:
            if name == "lime":
                check_lime()
            if name == "prototype":
                return PrototypeProjection(find_prototypes(predictor))
        except SpitError:
            raise ApiError("method_unavailable", f"{name} needs " + (
                "prototypes of this model." if name == "prototype" else "captum and scikit-image on the server.")
            ) from None
        sampled = issubclass(METHODS[name], Lime | TokenRise) and samples is not None
        return create_method(name, **({"samples": samples} if sampled else {}))

    def _load(self, source: str) -> Predictor:
        predictor = load(source, self.device)
        for block in getattr(predictor.model.backbone, "blocks", ()):
            block.register_forward_pre_hook(may_stop)
        return predictor
