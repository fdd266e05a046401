"""A recipe: everything that determines a run, in one TOML file with a section for each class here."""

import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from spit.config import NO_PRESET, ModelConfig
from spit.documents import differences, flat
from spit.options import Options, documented, option, read_value
from spit.registry import architecture_of, weights_name
from spit.training import TrainingError
from spit.training.augment import AugmentConfig
from spit.training.distributed import Team
from spit.training.elastic import ElasticConfig
from spit.wording import suggestion

if TYPE_CHECKING:
    from spit.training.build import Job


@documented
@dataclass(frozen=True)
class ModelRecipe(Options):
    """``[model]``: the model to train."""

    name: str = option("spit_tiny_16.paper", "Model to train from scratch, see spit.list_models(); not read if "
                                             "pretrained is set, nor by a retrofit")
    pretrained: str = option("", "Trained model to start from: what spit.load_model takes, a name among them")
    options: Mapping[str, Any] = option(
        dict, "Options of spit.ModelConfig to change, as a table [model.options]; num_classes is the number of "
              "classes in data.train if left out")

    def describe(self, config: ModelConfig, start: str = "") -> dict[str, Any]:
        """This section as a report shows it.

        Args:
            config: of the model that was trained.
            start: weights that it started from (default: those of :attr:`pretrained`).
        """
        start = self.pretrained or start
        other = f"{config.tokenizer} tokens, width {config.width}, depth {config.depth}, heads {config.heads}"
        return {"architecture": (architecture_of(config) or other) if start else self.name,
                "started from": weights_name(start) if start else "new weights", "options": self.options}

    def title(self, config: ModelConfig) -> str:
        """The model in a few words, such as ``spit_tiny_16 from spit_tiny_16.deit_retrofit``."""
        told = self.describe(config)
        return f"{told['architecture']} from {told['started from']}" if self.pretrained else self.name

    def apply_to(self, config: ModelConfig) -> ModelConfig:
        """A config with :attr:`options`. Options of its own tokenizer are merged, those of another one replaced."""
        asked = dict(self.options)
        if asked.get("preset", "spit") != "spit":
            raise ValueError(f"[model.options] {NO_PRESET}")
        asked["tokenizer_options"] = config.options_for(asked.get("tokenizer", config.tokenizer),
                                                        asked.get("tokenizer_options", {}))
        return ModelConfig.from_dict({**config.to_dict(), **asked})


@documented
@dataclass(frozen=True)
class DataRecipe(Options):
    """``[data]``: the photos; paths are relative to the working directory."""

    train: tuple[str, ...] = option((), "Folders with a sub-folder for each class, or WebDataset shards")
    validation: tuple[str, ...] = option((), "Likewise, to measure accuracy on")
    side: int = option(288, "Side of the squares that photos are decoded to; crops are taken from them", least=1,
                       most=2**14)
    size: int = option(256, "Side of the squares that the model sees", least=16, most=2**14)
    workers: int = option(2, "Decoding processes; no more than there are cores", least=0)
    resident: bool = option(False, "Decode all photos once, into the memory of the device")
    whole: bool = option(False, "Rescale whole photos to squares of data.size, for training and evaluation; data.side, "
                                "augment.scale and augment.ratio are not used")

    @property
    def processes(self) -> int:
        """``workers``, but no more than this process has cores, where torch would warn."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(self.workers, cores)

    def model_options(self) -> dict[str, Any]:
        """Options by which a model remembers the size of the squares, and whether they are whole photos."""
        return {"train_size": self.size, "eval_size": self.size, **({"eval_crop": None} if self.whole else {})}


@documented
@dataclass(frozen=True)
class Optimization(Options):
    """``[optimization]``: AdamW, its schedule and regularization.

    The defaults are App. C's for pre-training, where it has them: docs/recipes.md.
    """

    epochs: float = option(300.0, "Passes over the photos", above=0)
    batch: int = option(1024, "Photos of a step, over all processes and passes; an even number", least=2)
    accumulate: int = option(1, "Passes of a process for one step", least=1)
    lr: float = option(3e-3, "Highest learning rate", least=0)
    min_lr: float = option(1e-6, "Learning rate at the end", least=0)
    warmup_lr: float = option(1e-5, "Learning rate at the start", least=0)
    warmup: float = option(5.0, "Epochs of warm-up, at most all", least=0)
    betas: tuple[float, float] = option((0.9, 0.999), "β of AdamW", least=0, below=1)
    eps: float = option(1e-7, "ε of AdamW", least=0)
    weight_decay: float = option(0.02, "Weight decay of matrices; biases, norms and scales have none", least=0)
    clip: float = option(1.0, "Maximum norm of the gradient; 0 does not clip", least=0)
    ema: float = option(0.9999, "Decay of the average of the weights; 0 keeps none", least=0, below=1)
    precision: Literal["fp32", "bf16"] = option("fp32", "fp32, or bf16 autocast with float32 weights")
    compile: bool = option(False, "Run torch.compile on the network")
    smoothing: float = option(0.0, "Label smoothing", least=0, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch % 2:
            raise ValueError(f"expected an even batch, since CutMix takes pairs, got {self.batch}")
        if self.warmup > self.epochs:
            raise ValueError(f"expected warmup of at most {self.epochs:g}, the epochs of the run, got {self.warmup:g}; "
                             "lower optimization.warmup or raise optimization.epochs")

    def rate(self, step: int, warmup: int, total: int) -> float:
        """The learning rate of a step: ``warmup`` steps up and the rest of ``total`` down, each along half a cosine.

        This is our own because it is a function of the step alone; torch's schedulers have a state to restore.
        """
        first, last, share = ((self.warmup_lr, self.lr, step / warmup) if step < warmup else
                              (self.lr, self.min_lr, (step - warmup) / max(total - warmup, 1)))
        return last + (first - last) * (1 + math.cos(math.pi * min(share, 1.0))) / 2


@documented
@dataclass(frozen=True)
class RunRecipe(Options):
    """``[run]``: where results go and how often; only the seed changes them."""

    output: str = option("runs/spit", "Folder of the run")
    seed: int = option(0, "Seed of weights, order, augmentation and dropout", least=0)
    log: int = option(50, "Steps between lines of metrics.jsonl", least=1)
    checkpoint: int = option(1000, "Steps between checkpoints", least=1)
    validate: float = option(1.0, "Epochs between validations; 0 validates at the end only", least=0)
    patience: int = option(20, "Stop after this many steps in a row with gradients that are not finite", least=1)


@documented
@dataclass(frozen=True)
class Recipe(Options):
    """All sections of a recipe."""

    model: ModelRecipe = option(ModelRecipe, "The model")
    data: DataRecipe = option(DataRecipe, "The photos")
    augment: AugmentConfig = option(AugmentConfig, "Augmentation")
    elastic: ElasticConfig = option(ElasticConfig, "Other tokens than the model's own")
    optimization: Optimization = option(Optimization, "Optimizer, schedule and regularization")
    run: RunRecipe = option(RunRecipe, "Output and seed")

    @classmethod
    def read(cls, path: Path | None, changes: Sequence[str | tuple[str, Any]] = ()) -> Self:
        """Read a recipe and change some of its values.

        Args:
            path: a file, or the name of a recipe that comes with spit; None for the defaults.
            changes: "section.key=value", the value as TOML or a bare word, or the key and the value.

        Raises:
            TrainingError: no such file, no TOML, an unknown key (the nearest is named), or a wrong value.
        """
        try:
            written = {} if path is None else tomllib.loads(_text(path))
        except (OSError, ValueError, RecursionError) as error:
            raise TrainingError(f"{path}: expected a recipe in TOML: {error}") from error
        document: dict[str, Any] = {section: {} for section in written}
        parsed = (_parse(change) if isinstance(change, str) else change for change in changes)
        for key, value in (*flat(written).items(), *parsed):
            _put(document, key, value)
        try:
            return cls.from_dict(document, "section")
        except (TypeError, ValueError) as error:
            raise TrainingError(f"{path or 'changes'}: {error}") from error

    def changes_since(self, old: Mapping[str, Any]) -> str:
        """What changes the result and differs from an earlier recipe, which had the defaults of options added since."""
        earlier = {key: value for key, value in flat(old).items() if key not in REMOVED or value != REMOVED[key][0]}
        before, now = ({key: value for key, value in values.items() if key not in FREE}
                       for values in (flat(type(self)().to_dict()) | earlier, flat(self.to_dict())))
        return differences(before, now)

    def job(self, team: Team) -> "Job":
        """What to train on what.

        Raises:
            TrainingError: the parts of the recipe do not fit each other or the photos.
        """
        from spit.training.build import classification_job

        return classification_job(self, team)


# Options that may change between two starts of one run, since they do not change its result.
FREE = ("data.train", "data.validation", "data.workers", "data.resident", "data.kept", "run.output", "run.log",
        "run.checkpoint", "run.validate", "run.patience", "optimization.compile")

# Options that are gone: their default, which asked for nothing, and what to do instead of another value.
REMOVED: Mapping[str, tuple[Any, str]] = {
    "data.kept": ("", "decode to memory with data.resident, or resize the photos once"),
    "elastic.levels": ([], "list max_tokens or merge_threshold"),
    "parent.second": ("", "train on the parent alone, in one run or with model.pretrained in a second one"),
    "distill.second": (1.0, "there is one teacher, the parent"),
    "distill.temperature": (1.0, "logits are compared at temperature 1"),
}

# Options of recipes before 0.2, and where they are now.
RENAMED = {
    "model.gradients": "model.options.gradients",
    "model.num_classes": "model.options.num_classes",
    "optimization.drop_path": "model.options.drop_path",
    "optimization.token_budget": "model.options.token_budget",
    "parent.tokenizer": "model.options.tokenizer",
    "parent.options": "model.options.tokenizer_options",
    "parent.gradients": "model.options.gradients",
    "parent.fill": "model.options.fill",
    "parent.start": "model.pretrained",
}


def recipes() -> dict[str, Path]:
    """The recipes that come with spit, by name."""
    return {path.stem: path for path in sorted((Path(__file__).parents[1] / "recipes").glob("*.toml"))}


def _text(path: Path) -> str:
    """The text of a file, or of the recipe of spit that a bare name means, with or without ``.toml``."""
    known, name = recipes(), path.name.removesuffix(".toml")
    bare = path.name == str(path) and not path.is_file() and name in known
    try:
        return (known[name] if bare else path).read_text()
    except FileNotFoundError as error:
        hint = suggestion(name, known, f"spit has {', '.join(known)}", 3)
        raise TrainingError(f"{path}: no such recipe; {hint}") from error
    except (IsADirectoryError, UnicodeDecodeError) as error:
        got = "folder" if path.is_dir() else "file that is not text"
        raise TrainingError(f"{path}: expected a recipe, a TOML file or one of {', '.join(known)}, got a {got}"
                            ) from error


def _parse(change: str) -> tuple[str, Any]:
    key, equals, text = change.partition("=")
    if not equals or "." not in key:
        raise TrainingError(f"expected section.key=value, such as optimization.epochs=10, got {change!r}")
    return key.strip(), read_value(text)


def _put(document: dict[str, Any], key: str, value: Any) -> None:
    """Set ``section.key`` or ``section.table.key``, by its present name; an option that is gone keeps its default."""
    if key in REMOVED:
        default, instead = REMOVED[key]
        if value != default:
            raise TrainingError(f"{key}={value!r}: this option is gone; {instead}")
        return
    for old, new in RENAMED.items():
        if key == old or key.startswith(f"{old}."):
            key = new + key.removeprefix(old)
            if value == 0 and old == "model.num_classes":  # it meant: as many as the photos have
                return
            if value == 0 and old == "optimization.token_budget":
                value = "none"
    *path, last = key.split(".")
    table: Any = document
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise TrainingError(f"{key}: expected a table {part}, got {table!r}")
    table[last] = value
