"""The options that verbs share, each written once.

A verb asks for a group by a parameter whose type is one of the dataclasses here;
:func:`command` shows typer the group's fields in its place.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from spit.tokenizers import Tokenizer

DEFAULT_MODEL = "spit_tiny_16"
Images = Annotated[list[Path], typer.Argument(
    metavar="IMG", help="Image files, or folders that are searched for images at any depth.", show_default=False)]
OutputFolder = Annotated[Path, typer.Option(
    "--output", "-o", metavar="FOLDER", help="Where the files go; made where it is not there. Files of the same "
                                             "names in it are replaced.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout, and nothing else there.")]
Weights = Annotated[str | None, typer.Option(
    "--weights", metavar="PATH|HUB_ID", show_default=False,
    help="A folder that spit.save_model wrote, a Hugging Face hub id (owner/name or owner/name@revision), or a ViT "
         "in timm's names (.safetensors or .pth). The checkpoint that comes with spit unless told.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, or auto for the best one that spit has kernels for.")]
OwnSize = Annotated[int | None, typer.Option(
    "--image-size", min=1, show_default=False,
    help="Side of the square that the model sees; the model's own, 224 where it does not say, unless told.")]


def listed(values: Iterable[str]) -> list[str]:
    """What was given one by one, or several at once with commas between; a path that is there stays whole."""
    return [part for value in values for part in ([value] if Path(value).exists() else value.split(","))]


def _option(text: str, metavar: str | None = None) -> Any:
    return typer.Option(help=text, metavar=metavar, show_default=False, rich_help_panel="Tokenizer")


@dataclass(frozen=True)
class TokenizerOptions:
    """τ and its options; those left out take the tokenizer's own defaults."""

    tokenizer: Annotated[str | None, _option(
        "superpixel, patch or voronoi; superpixel, or the model's own where there is one, unless told.", "NAME")] = None
    levels: Annotated[int | None, _option("Superpixels: levels of the hierarchy, 4 unless told.")] = None
    compactness: Annotated[float | None, _option("Superpixels: from 0, as the image is, to 1, compact.")] = None
    merge_threshold: Annotated[float | None, _option(
        "Superpixels: join neighbours closer than this after the last level; 0 joins none.")] = None
    max_tokens: Annotated[int | None, _option("Superpixels: an exact upper bound on the number of regions.")] = None
    refine: Annotated[int | None, _option("Superpixels: sweeps of boundary moves after the hierarchy.")] = None
    features: Annotated[str | None, _option(
        "Superpixels: what is compared, paper, published or saturated.", "NAME")] = None
    similarity: Annotated[str | None, _option(
        "Superpixels: how it is, cosine, euclidean or variance.", "NAME")] = None
    self_loop: Annotated[str | None, _option(
        "Superpixels: weight of staying alone: clipped, paper, published or none.", "NAME")] = None
    patch_size: Annotated[int | None, _option("Patches: side in pixels, 16 unless told.")] = None
    cells: Annotated[int | None, _option("Voronoi: how many cells, one for every 256 pixels unless told.")] = None
    seed: Annotated[int | None, _option("Voronoi: another seed, other cells.")] = None

    def given(self, name: str) -> dict[str, Any]:
        """What was asked for of the tokenizer of that name; what belongs to another is refused."""
        known = {"superpixel": ("levels", "compactness", "merge_threshold", "max_tokens", "refine", "features",
                                "similarity", "self_loop"),
                 "patch": ("patch_size",), "voronoi": ("cells", "seed")}
        asked = {key: value for key, value in vars(self).items() if key != "tokenizer" and value is not None}
        for key in asked:
            if name in known and key not in known[name]:
                owner = next(owner for owner, names in known.items() if key in names)
                raise ValueError(f"--{key.replace('_', '-')} belongs to --tokenizer {owner}, not to {name}")
        return {"size" if key == "patch_size" else key: value for key, value in asked.items()}

    def name(self, default: str = "superpixel") -> str:
        """The tokenizer asked for."""
        return self.tokenizer or default

    def build(self, name: str = "superpixel", base: dict[str, Any] | None = None) -> "Tokenizer":
        """The tokenizer asked for; ``name`` with the options ``base`` unless another was."""
        from spit.tokenizers import create_tokenizer

        chosen = self.name(name)
        return create_tokenizer(chosen, **{**((base or {}) if chosen == name else {}), **self.given(chosen)})

    @property
    def anything(self) -> bool:
        """Whether any option was given at all."""
        return any(value is not None for value in vars(self).values())


@dataclass(frozen=True)
class Reading:
    """How image files are read."""

    max_pixels: Annotated[int | None, typer.Option(
        min=1, show_default=False, help="Refuse images of more pixels; 100 million unless told.")] = None

    def load(self, path: Path) -> Any:
        """The image in a file, ``(3, H, W)`` uint8."""
        from spit.data.images import MAX_PIXELS, load_image

        return load_image(path, MAX_PIXELS if self.max_pixels is None else self.max_pixels)


def choose_device(name: str) -> str:
    """Check ``--device``: a device that is there and that spit has kernels for."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind = name.partition(":")[0]
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"expected --device cpu, cuda or auto, got {name!r}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"--device {name}: torch finds no CUDA device here; use --device cpu")
    return name


def command(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The verb as typer reads it: each parameter of a dataclass's type replaced by the dataclass's fields."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(verb, eval_str=True).parameters.values():
        kind = parameter.annotation
        if is_dataclass(kind):
            groups[parameter.name] = kind
            hints = get_type_hints(kind, include_extras=True)
            parameters += [inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
                                             annotation=hints[field.name]) for field in fields(kind)]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(verb)
    def run(**values: Any) -> Any:
        for name, kind in groups.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
        return verb(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
