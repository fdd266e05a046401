"""The options that commands share, each declared once, and how typer gets them.

A verb asks for a group of options by a parameter whose type is a dataclass of :mod:`spit.options`, one of these or one
of the library's own; :func:`command` shows typer an option for each field.
"""

import inspect
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import MISSING, dataclass, is_dataclass, make_dataclass, replace
from functools import wraps
from keyword import iskeyword
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args, get_origin

import typer

from spit.cli.console import tell_compiling, waiting
from spit.cli.help import describe, value_name
from spit.cli.outputs import check_folder
from spit.data.images import MAX_PIXELS, load_image
from spit.interop.published.options import PublishedOptions, PublishedVoronoiOptions
from spit.kernels.options import PatchOptions, SuperpixelOptions, VoronoiOptions
from spit.options import Options, Spec, declared, option, same

if TYPE_CHECKING:
    from torch import Tensor

    from spit.config import ModelConfig
    from spit.predictor import Predictor
    from spit.tokenizers import Tokenizer

TOKEN_SIDE = 16  # of a square patch in pixels; a superpixel of the default tokenizer has about as many
PLAIN = (bool, int, float, str, Path)  # types of values on the command line
Flags = dict[str, dict[str, tuple[str, Any, Spec]]]
"""A tokenizer option by its flag: for each tokenizer that has it the field, its type, and its range and help."""
Images = Annotated[list[Path], typer.Argument(
    metavar="IMG", help="Image files, or folders that are searched for images at any depth.", show_default=False)]


@dataclass(frozen=True)
class Running(Options):
    """Where a command runs and how it answers."""

    device: str = option("auto", "cpu, cuda, cuda:1 …, or auto for CUDA if there is any", metavar="DEVICE")
    as_json: bool = option(False, "Print one JSON document on stdout, and nothing else there", flag="json")

    @property
    def place(self) -> str:
        """The device, checked."""
        from spit.devices import choose_device

        return choose_device(self.device)


@dataclass(frozen=True)
class JsonOnly(Options):
    """How a command answers that runs on the CPU only."""

    as_json: bool = same(Running, "as_json", False)


@dataclass(frozen=True)
class Reading(Options):
    """How image files are read."""

    max_pixels: int = option(MAX_PIXELS, "Refuse images of more pixels", least=1)

    def load(self, path: Path) -> "Tensor":
        """The image in a file, ``(3, H, W)`` uint8."""
        return load_image(path, self.max_pixels)


@dataclass(frozen=True)
class Output(Options):
    """Where files go."""

    output: Path = option(Path("spit-output"), "Folder for the files; made if it does not exist", metavar="FOLDER",
                          short="-o")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_folder(self.output)


@dataclass(frozen=True)
class Models(Options):
    """Which models answer, and what they see."""

    model: tuple[str, ...] = option(
        ("spit_tiny_16",), "A name of spit.list_models(pretrained=True), with or without its tag: spit_tiny_16 is "
        "spit_tiny_16.deit_retrofit; a folder that spit.save_model wrote, a hub id (owner/name or "
        "owner/name@revision), or a file, .safetensors or .pth, with a timm ViT state dict or a checkpoint of the "
        "authors' release; timm:NAME or hf:ID for a ViT of timm or transformers. Where a command takes several, repeat "
        "the option or separate them with commas",
        metavar="NAME|PATH|HUB_ID")
    size: int | None = option(
        None, "Pixels that the model sees: the shorter side of a whole image (default: its own, up to 512 × 512 pixels "
              "in all), or the side of the square that a cropped image becomes (default: the model's own)",
        least=TOKEN_SIDE)

    def load(self, device: str, tokenizer: "TokenizerChoice | None" = None) -> "list[Predictor]":
        """The predictors, all with names of their own."""
        sources = listed(self.model)
        if len(set(sources)) < len(sources):
            raise ValueError("expected each --model once, got one twice")
        with waiting("Loading the model" if len(sources) == 1 else "Loading models"):
            from spit.predictor import load

            found = [load(source, device, self.size) for source in sources]
        tell_compiling()
        if tokenizer is not None and tokenizer.given:
            found = [one.with_tokenizer(tokenizer.build(one.model.config)) for one in found]
        if len({one.name for one in found}) < len(found):  # runs/a/model and runs/b/model
            for one, source in zip(found, sources, strict=True):
                one.name = source.strip("/").replace("/", "_")
        return found

    def expect_one(self) -> str:
        """The source of the only model; refuses several before they are loaded."""
        if len(listed(self.model)) != 1:
            raise ValueError(f"expected one --model, got {', '.join(self.model) or 'none'}")
        return self.model[0]

    def load_one(self, device: str, tokenizer: "TokenizerChoice | None" = None) -> "Predictor":
        """The predictor of a verb that takes one model."""
        self.expect_one()
        return self.load(device, tokenizer)[0]

    def load_measured(self, device: str, head: bool = True) -> "list[Predictor]":
        """Predictors for a table: a folder has its path for a name, since many runs end in a folder ``model``."""
        found = self.load_classifiers(device, head=head)
        for one, source in zip(found, listed(self.model), strict=True):
            if Path(source).is_dir():
                one.name = source.rstrip("/")
        return found

    def load_classifiers(self, device: str, tokenizer: "TokenizerChoice | None" = None,
                         head: bool = True) -> "list[Predictor]":
        """Predictors that see squares of one size, and with ``head`` know classes."""
        found = self.load(device, tokenizer)
        for one in found if head else ():
            one.expect_classes()
        own = {one.name: one.model.config.eval_size for one in found if one.model.config.eval_size}
        if self.size is None and own:
            if len(set(own.values())) > 1:
                sizes = ", ".join(f"{name} {size}" for name, size in own.items())
                raise ValueError(f"expected models of one size, got {sizes}; give --size for all of them")
            for one in found:
                [one.size] = set(own.values())
        return found


SHARED = (Running, Reading, Output, Models)


def tokenizers() -> dict[str, type[Any]]:
    """The options of each tokenizer: of spit's own, and of those of plugins, which have imported torch."""
    own = {"patch": PatchOptions, "voronoi": VoronoiOptions, "superpixel": SuperpixelOptions,
           "published": PublishedOptions, "published_voronoi": PublishedVoronoiOptions}
    parts = sys.modules.get("spit.parts")
    return {**own, **(parts.TOKENIZERS if parts is not None else {})}


class TokenizerChoice(Options):
    """A tokenizer and its options; those left out are the tokenizer's, or the model's own."""

    flags: ClassVar[Flags] = {}

    @property
    def given(self) -> dict[str, Any]:
        """The options that were given, ``tokenizer`` among them, by field."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def build(self, config: "ModelConfig | None" = None) -> "Tokenizer":
        """The tokenizer that was asked for, over the tokenizer and options of a model's config."""
        from spit.tokenizers import create_tokenizer

        asked = self.given
        own = "superpixel" if config is None else config.tokenizer
        name = asked.pop("tokenizer", own)
        changes = {}
        for flag, value in asked.items() if name in tokenizers() else ():
            owners, shown_flag = self.flags[flag], f"--{flag.replace('_', '-')}"
            if name not in owners:
                raise ValueError(f"{shown_flag} belongs to --tokenizer {next(iter(owners))}, not to {name}")
            field, _, spec = owners[name]
            spec.check(shown_flag, value)
            changes[field] = value
        return create_tokenizer(name, **(changes if config is None else config.options_for(name, changes)))


def _tokenizer_flags(taken: Collection[str]) -> Flags:
    """The flags of the tokenizers; the name stands before one that is taken, or has another type elsewhere."""
    found: Flags = {}
    for name, kind in tokenizers().items():
        for item, hint, spec in declared(kind, plain=True):  # of your own, a plain field will do
            if not _has_flag(hint):
                continue
            told = "(default" in spec.help or item.default in (None, MISSING)
            default = "" if told else f" (default: {item.default})"
            text = f"{spec.help[:1].lower()}{spec.help[1:]}{default}"
            flag = _word(item, spec)
            others = {other | None for _, other, _ in found.get(flag, {}).values()}
            if flag in taken or iskeyword(flag) or others - {hint | None}:
                flag = f"{name}_{flag}"
            found.setdefault(flag, {})[name] = (item.name, hint, replace(spec, help=text))
    return found


def _has_flag(hint: Any) -> bool:
    """Whether the command line can take a value of this type."""
    parts = get_args(hint)
    if NoneType in parts:
        return all(_has_flag(one) for one in parts if one is not NoneType)
    if get_origin(hint) is Literal:
        return all(isinstance(word, str) for word in parts)
    return hint in PLAIN or (get_origin(hint) is tuple and parts[0] in PLAIN)


def tokenizer_choice(taken: Collection[str] = ()) -> type[TokenizerChoice]:
    """A dataclass with an option for each field of each registered tokenizer, yours among them.

    Args:
        taken: options that the command has beside them and beside those that most commands have.
    """
    flags = _tokenizer_flags({*taken, *_words(SHARED), *dir(TokenizerChoice), "tokenizer", "help", "plugin"})
    options: list[tuple[str, Any, Any]] = [("tokenizer", str | None, option(
        None, f"{', '.join(tokenizers())} (default: the model's own, or superpixel). With the model's own, "
              "options left out keep the model's values; defaults shown here are those of another tokenizer",
        metavar="NAME"))]
    for flag, owners in flags.items():
        kind = next(iter(owners.values()))[1]
        texts: dict[str, list[str]] = {}
        for name, (_, _, spec) in owners.items():
            texts.setdefault(spec.help, []).append(name)
        about = ". ".join(f"{', '.join(names).capitalize()}: {text}" for text, names in texts.items())
        options.append((flag, kind | None, option(None, about)))
    made: type[TokenizerChoice] = make_dataclass("TokenizerOptions", options, bases=(TokenizerChoice,), frozen=True,
                                                 namespace={"flags": flags})
    return made


def listed(values: Iterable[str]) -> list[str]:
    """Values given one by one, or several at once with commas between; a path that exists stays whole."""
    return [part for value in values for part in ([value] if Path(value).exists() else value.split(","))]


def command(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb as typer reads it: each parameter whose type is a dataclass replaced by options for its fields."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    given = inspect.signature(verb, eval_str=True).parameters.values()
    kinds = [one.annotation for one in given if is_dataclass(one.annotation)]
    for parameter in given:
        kind = parameter.annotation
        if kind is TokenizerChoice:
            kind = tokenizer_choice({*_words(kinds), *(one.name for one in given if one.annotation not in kinds)})
        if is_dataclass(kind):
            groups[parameter.name] = kind
            panel = "Tokenizer" if issubclass(kind, TokenizerChoice) else None  # type: ignore[arg-type]
            parameters += [_parameter(*parts, panel) for parts in declared(kind)]  # type: ignore[arg-type]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(verb)
    def run(**values: Any) -> Any:
        made = {}
        for name, kind in groups.items():
            own = {}
            for item, _, spec in declared(kind):
                value = values.pop(item.name)
                spec.check(_flag(item, spec), value)
                own[item.name] = tuple(value) if isinstance(value, list) else value
            made[name] = kind(**own)
        return verb(**values, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _words(kinds: Iterable[Any]) -> set[str]:
    """The names and flags of all options of some dataclasses."""
    return {word for kind in kinds for item, _, spec in declared(kind) for word in (item.name, _word(item, spec))}


def _word(item: Any, spec: Spec) -> str:
    """An option's flag as the name of a parameter."""
    return (spec.flag or item.name).replace("-", "_")


def _flag(item: Any, spec: Spec) -> str:
    return f"--{_word(item, spec).replace('_', '-')}"


def _parameter(item: Any, hint: Any, spec: Spec, panel: str | None) -> inspect.Parameter:
    """One option as a parameter that typer understands."""
    optional = NoneType in get_args(hint)
    kind = next(one for one in get_args(hint) if one is not NoneType) if optional else hint
    flag = _flag(item, spec)
    if kind is bool and item.default is not False and "/" not in flag:
        flag = f"{flag}/--no-{flag[2:]}"
    choices = spec.choices
    if get_origin(kind) is Literal:
        kind, choices = str, get_args(kind)
    one = get_args(kind)[0] if get_origin(kind) is tuple else kind
    told = typer.Option(flag, *([spec.short] if spec.short else []), help=describe(spec, item.default),
                        metavar=spec.metavar or "|".join(choices) or value_name(one), rich_help_panel=panel,
                        show_default=False)
    kind = list[one] if one is not kind else kind  # type: ignore[valid-type]
    default = list(item.default) if isinstance(item.default, tuple) else item.default
    return inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=default,
                             annotation=Annotated[kind | None if optional else kind, told])
