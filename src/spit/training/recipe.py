"""A recipe: everything that makes a run, in one TOML file."""

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import distributions
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from spit.training.augment import AugmentConfig
from spit.training.errors import TrainingError

PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True)
class ModelRecipe:
    """``[model]``: what to train.

    Attributes:
        name: one of :func:`spit.list_models`.
        gradients: whether φ adds gradient histograms.
        pretrained: weights to begin with, a folder or a hub id; "" begins from nothing.
        num_classes: 0 for as many as the training photos have.
        options: other fields of :class:`spit.ModelConfig`, as a table ``[model.options]``.
    """

    name: str = "spit_tiny_16"
    gradients: bool = True
    pretrained: str = ""
    num_classes: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DataRecipe:
    """``[data]``: what to train on; paths are taken from where the command runs.

    Attributes:
        train, validation: folders with a sub-folder for each class, or WebDataset shards.
        side: photos are kept as squares of this side, and cropped out of these.
        size: side of the square that the model sees.
        workers: processes that decode.
        resident: decode once, into memory of the device.
        kept: with resident, a folder where what was decoded is kept for the next run; "" for none.
    """

    train: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    side: int = 288
    size: int = 256
    workers: int = 2
    resident: bool = False
    kept: str = ""

    def __post_init__(self) -> None:
        _at_least(self, 1, "side", "size")
        _at_least(self, 0, "workers")


@dataclass(frozen=True)
class Optimization:
    """``[optimization]``: AdamW, its schedule, and what regularizes; App. C's unless told.

    Attributes:
        epochs: passes over the photos.
        batch: photos of a step, over all processes and accumulated passes.
        accumulate: passes a process makes for one step.
        lr, min_lr, warmup_lr: the schedule's most, its end and its start.
        warmup: epochs from its start to its most.
        betas, eps, weight_decay: of AdamW; what has one dimension does not decay.
        clip: the longest gradient; 0 for any.
        ema: decay of the average of the weights; 0 for none.
        precision: fp32, or bf16 under autocast with float32 weights.
        compile: whether torch.compile makes the network.
        smoothing: of labels.
        drop_path: stochastic depth.
        token_budget: tokens an image keeps at most; 0 for all.
    """

    epochs: float = 300
    batch: int = 1024
    accumulate: int = 1
    lr: float = 3e-3
    min_lr: float = 1e-6
    warmup_lr: float = 1e-5
    warmup: float = 5
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-7
    weight_decay: float = 0.02
    clip: float = 1.0
    ema: float = 0.9999
    precision: Literal["fp32", "bf16"] = "fp32"
    compile: bool = False
    smoothing: float = 0.0
    drop_path: float = 0.2
    token_budget: int = 256

    def __post_init__(self) -> None:
        _at_least(self, 1, "accumulate")
        _at_least(self, 2, "batch")
        _at_least(self, 0, "lr", "min_lr", "warmup_lr", "warmup", "weight_decay", "clip", "smoothing", "token_budget",
                  "eps", "ema", "drop_path")
        for name in ("ema", "smoothing", "drop_path"):
            if getattr(self, name) >= 1:
                raise ValueError(f"expected {name} below 1, got {getattr(self, name)}")
        if self.epochs <= 0:
            raise ValueError(f"expected epochs above 0, got {self.epochs}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"expected betas from 0 to below 1, got {self.betas}")
        if self.batch % 2:
            raise ValueError(f"expected an even batch, which CutMix takes in pairs, got {self.batch}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"expected precision {' or '.join(PRECISIONS)}, got {self.precision!r}")


@dataclass(frozen=True)
class RunRecipe:
    """``[run]``: where it goes and how often it speaks; nothing here but the seed changes the result.

    Attributes:
        output: the run's folder.
        seed: of weights, order, augmentation and dropout.
        log, checkpoint: steps between figures, and between checkpoints.
        validate: epochs between validations; 0 for the end alone.
        patience: steps in a row whose gradients may be no numbers before the run stops.
    """

    output: str = "runs/spit"
    seed: int = 0
    log: int = 50
    checkpoint: int = 1000
    validate: float = 1
    patience: int = 20

    def __post_init__(self) -> None:
        _at_least(self, 1, "log", "checkpoint", "patience")
        _at_least(self, 0, "validate", "seed")


@dataclass(frozen=True)
class Recipe:
    """All sections of a recipe."""

    model: ModelRecipe = field(default_factory=ModelRecipe)
    data: DataRecipe = field(default_factory=DataRecipe)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    optimization: Optimization = field(default_factory=Optimization)
    run: RunRecipe = field(default_factory=RunRecipe)

    def to_dict(self) -> dict[str, Any]:
        """The recipe as JSON has it."""
        document: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return document


# What may change between two starts of one run without changing its end.
FREE = ("data.train", "data.validation", "data.workers", "data.resident", "data.kept", "run.output", "run.log",
        "run.checkpoint", "run.validate", "run.patience", "optimization.compile")


def read_recipe(path: Path | None, changes: Sequence[str] = (), kind: type[Recipe] = Recipe) -> Recipe:
    """Read a recipe, with some of its values changed.

    Args:
        path: a file, or the name of a recipe that comes with spit; None for the defaults alone.
        kind: whose sections it has; keys left out take this kind's defaults.
        changes: "section.key=value", the value as TOML has it, or a bare word.

    Raises:
        TrainingError: no such file, no TOML, an unknown key (the nearest is named), or a wrong value.
    """
    try:
        document = {} if path is None else tomllib.loads(_find(path).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TrainingError(f"{path}: expected a recipe in TOML: {error}") from error
    for change in changes:
        _change(document, change)
    try:
        defaults = kind().to_dict()
        _refuse_unknown(document, [item.name for item in fields(kind)], "section")
        kinds = get_type_hints(kind)
        return kind(**{name: _section(kinds[name], name, values, defaults[name]) for name, values in document.items()})
    except (TypeError, ValueError) as error:
        raise TrainingError(f"{path or '--set'}: {error}") from error


def recipes() -> dict[str, Path]:
    """The recipes that come with spit, by name: those of the clone, else those that were installed."""
    clone = Path(__file__).parents[3] / "recipes"
    installed = (Path(str(file.locate())) for package in distributions(name="spit") for file in package.files or ()
                 if file.match("share/spit/recipes/*.toml"))
    return {path.stem: path for path in sorted(clone.glob("*.toml") if clone.is_dir() else installed)}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two recipes that changes a run's end, as ``key was …, is …``."""
    before, after = _flat(old), _flat(new)
    return [f"{key} was {before.get(key)!r}, is {after.get(key)!r}" for key in sorted(before.keys() | after.keys())
            if key not in FREE and before.get(key) != after.get(key)]


def _find(path: Path) -> Path:
    """The file, or the recipe of spit that a bare name means, with or without its ``.toml``."""
    known, name = recipes(), path.name.removesuffix(".toml")
    if path.name == str(path) and not path.is_file() and name in known:
        return known[name]
    if path.exists():
        return path
    near = difflib.get_close_matches(name, known, n=3, cutoff=0)
    raise TrainingError(f"{path}: expected a recipe, but there is none; of those that come with spit the nearest are "
                        f"{', '.join(near)}")


def _section(kind: Any, name: str, values: Any, defaults: Mapping[str, Any]) -> Any:
    if not isinstance(values, dict):
        raise TypeError(f"expected a table [{name}], got {values!r}")
    hints = get_type_hints(kind)
    _refuse_unknown(values, hints, f"key of [{name}]")
    try:
        values = {**defaults, **values}
        return kind(**{key: _value(hints[key], f"{name}.{key}", value) for key, value in values.items()})
    except ValueError as error:
        raise ValueError(f"[{name}] {error}") from error


def _value(kind: Any, name: str, value: Any) -> Any:
    """A value of TOML as a field of that type has it."""
    origin = get_origin(kind)
    if origin is tuple:
        inner = get_args(kind)
        items = value if isinstance(value, list) else [value]
        if inner[-1] is not Ellipsis and len(items) != len(inner):
            raise ValueError(f"expected {name} as a list of {len(inner)}, got {value!r}")
        return tuple(_value(inner[0], name, item) for item in items)
    if origin is Literal:
        return value
    if isinstance(kind, UnionType):
        return _value(get_args(kind)[0], name, value)
    plain = {float: (int, float)}.get(kind, origin or kind)
    if not isinstance(value, plain) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"expected {name} of type {getattr(kind, '__name__', kind)}, got {value!r}")
    return float(value) if kind is float else value


def _change(document: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    section, _, name = key.strip().partition(".")
    if not equals or not name:
        raise TrainingError(f"expected section.key=value, optimization.epochs=10 say, got {change!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = document.setdefault(section, {})
    *path, last = name.split(".")
    for part in path:
        table = table.setdefault(part, {}) if isinstance(table, dict) else table
    if not isinstance(table, dict):
        raise TrainingError(f"{change}: {section} has no keys")
    table[last] = value


def _refuse_unknown(names: Iterable[str], known: Iterable[str], what: str) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise ValueError(f"unknown {what} {name!r}; the nearest known one is {near[0]!r}")


def _at_least(config: Any, least: float, *names: str) -> None:
    for name in names:
        if not getattr(config, name) >= least:
            raise ValueError(f"expected {name} of at least {least}, got {getattr(config, name)}")


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat
