"""Models by name: ``architecture.tag``, as in timm.

An architecture is ``{vit, rvit, spit}_{tiny, small, base, large}_16``. A tag says how it was trained: its config is in
``checkpoints/architecture.tag/``, its weights are there or in the distribution ``spit-vit-models``, a clone's
``models/``. The tag ``paper`` is the config of the paper, without weights. A name without a tag is its default tag: the
one with weights, if there is one.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from spit import weights
from spit.config import ModelConfig
from spit.errors import MissingExtra, WeightsError
from spit.interop.read import read_file
from spit.model import SpitModel
from spit.wording import suggestion

TOKENIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("patch", {"size": 16}),
    "rvit": ("voronoi", {}),  # as many cells as there would be patches
    "spit": ("superpixel", {"levels": 4}),
}
SIZES = {  # width, depth, heads
    "tiny": (192, 12, 3),
    "small": (384, 12, 6),
    "base": (768, 12, 12),
    "large": (1024, 24, 16),
}
ARCHITECTURES = {f"{family}_{size}_16": (family, size) for family in TOKENIZERS for size in SIZES}
PAPER = "paper"
DEFAULT_TAGS = {"spit_tiny_16": "deit_retrofit", "rvit_tiny_16": "deit_retrofit"}
CHECKPOINTS = Path(__file__).parent / "checkpoints"
CLONE = Path(__file__).parents[2] / "models/spit_vit_models"
BACKBONE_NAMES = ("timm:", "hf:")  # other people's, wrapped
SOURCES = ("a folder that spit.save_model wrote, a Hugging Face hub id (owner/name), or a .safetensors or .pth "
           "file with a timm ViT state dict or a checkpoint of the authors' release; or a backbone of another library, "
           "timm:NAME or hf:ID")


def list_models(pattern: str | Sequence[str] = "*", pretrained: bool = False) -> list[str]:
    """The names that :func:`create_model` knows, family by family, small to large.

    Args:
        pattern: a shell pattern, such as ``"spit_*"``, or several; with a dot, ``"*.paper"``, of names with tags.
        pretrained: only models whose weights are installed, as ``architecture.tag``.

    Example:
        >>> import spit
        >>> spit.list_models("spit_*")
        ['spit_tiny_16', 'spit_small_16', 'spit_base_16', 'spit_large_16']
        >>> spit.list_models("*.deit_*", pretrained=True)
        ['rvit_tiny_16.deit_retrofit', 'spit_tiny_16.deit_retrofit']
    """
    patterns = [pattern] if isinstance(pattern, str) else pattern
    tagged = [f"{name}.{tag}" for name in ARCHITECTURES for tag in tags(name)
              if not pretrained or checkpoint_files(f"{name}.{tag}/model-*.safetensors")]
    names = tagged if pretrained or any("." in one for one in patterns) else [*ARCHITECTURES]
    return [name for name in names
            if any(fnmatchcase(name, one) or fnmatchcase(name.partition(".")[0], one) for one in patterns)]


def tags(architecture: str) -> list[str]:
    """The tags of an architecture, the default first."""
    trained = sorted(path.name.partition(".")[2] for path in CHECKPOINTS.glob(f"{architecture}.*"))
    return sorted([*trained, PAPER], key=lambda tag: tag != DEFAULT_TAGS.get(architecture, PAPER))


def architecture_of(config: ModelConfig) -> str | None:
    """The architecture that a config has, by its name in :func:`list_models`; None if it has another."""
    if config.backbone == "wrapped":
        return None
    for name, (family, size) in ARCHITECTURES.items():
        tokenizer, options = TOKENIZERS[family]
        if (config.tokenizer, config.width, config.depth, config.heads) == (tokenizer, *SIZES[size]) and all(
                config.tokenizer_options.get(key, value) == value for key, value in options.items()):
            return name
    return None


def weights_name(source: str) -> str:
    """What :func:`load_model` takes, for a report: weights that come with spit are ``architecture.tag``."""
    if Path(source).exists() or source.partition(".")[0] not in ARCHITECTURES:
        return source
    folder = checkpoint_folder(source)
    return source if folder is None else folder.name


def checkpoint_folder(name: str, trained: bool = False) -> Path | None:
    """The folder with the config of ``architecture[.tag]``; None if it has no weights.

    Args:
        trained: suggest only names that have weights in place of an unknown one.
    """
    architecture, dot, tag = str(name).partition(".")
    if architecture not in ARCHITECTURES:
        names = [one for one in ARCHITECTURES if not trained or tags(one) != [PAPER]]
        hint = ("timm's weights are not downloaded: give a file with its state dict" if "_patch" in architecture else
                suggestion(architecture, names, "spit.list_models() returns all names", count=3))
        raise ValueError(f"unknown model {name!r}; {hint}")
    known = tags(architecture)
    useful = [one for one in known if not trained or one != PAPER]
    if dot and tag not in known and useful:
        raise ValueError(f"unknown tag {tag!r} of {architecture}; it has {', '.join(useful)}")
    tag = tag if dot else known[0]
    return None if tag == PAPER or not useful else CHECKPOINTS / f"{architecture}.{tag}"


def checkpoint_files(pattern: str) -> list[Path]:
    """The installed files of checkpoints that match a pattern, such as ``"*/prototypes.safetensors"``."""
    models = find_spec("spit_vit_models")
    folder = CLONE if models is None or models.origin is None else Path(models.origin).parent
    return sorted(path for root in (CHECKPOINTS, folder) for path in root.glob(pattern))


def _checkpoint_file(name: str, file: str) -> Path:
    """A file of ``architecture.tag``; MissingExtra if it is not installed."""
    for path in checkpoint_files(f"{name}/{file}"):
        return path
    raise MissingExtra("spit-vit-models", "models", f"loading {name}")


def model_config(name: str, gradients: bool | None = None) -> ModelConfig:
    """The config of ``architecture[.tag]``, the same with and without its weights.

    The paper's: queries, keys and values have no bias, LayerScale begins at 1e-5, and the kernels of the histograms
    have σ = 0.025, or 0.05 for base models with gradients.
    """
    folder = checkpoint_folder(name)
    if folder is not None:
        config = weights.read_config(str(folder), folder.joinpath)[0]
        return config if gradients is None else config.replace(gradients=gradients)
    family, size = ARCHITECTURES[name.partition(".")[0]]
    tokenizer, options = TOKENIZERS[family]
    width, depth, heads = SIZES[size]
    gradients = True if gradients is None else gradients
    sigma = 0.05 if size == "base" and gradients else 0.025
    return ModelConfig(tokenizer=tokenizer, tokenizer_options=dict(options), position_sigma=sigma, gradient_sigma=sigma,
                       gradients=gradients, width=width, depth=depth, heads=heads)


def create_model(name: str, pretrained: bool | str | PathLike[str] = False, num_classes: int | None = None,
                 gradients: bool | None = None, *, training: bool = False,
                 **overrides: Any) -> SpitModel:
    """Make a model by name.

    Args:
        name: ``architecture`` or ``architecture.tag``, see :func:`list_models`. The config is the same with and
            without weights.
        pretrained: True for the weights that come with spit; or what :func:`load_model` takes, with weights of this
            architecture. The model then has the config that those weights were saved with.
        num_classes: logits; 0 returns the class token. If it differs from the checkpoint's, the head is new and
            untrained. (default: the config's)
        gradients: whether φ adds gradient histograms (default: the config's).
        training: return the model in training mode instead of evaluation mode. Lightning 2.2 and later leaves a
            module in the mode it finds, so a LightningModule that trains needs it; loops that call ``model.train()``,
            such as the Hugging Face Trainer's, do not.
        overrides: other options of :class:`~spit.ModelConfig`. With weights, another ``resolution`` resizes γ, and
            options that decide which weights fit, such as ``depth``, cannot change.

    Raises:
        WeightsError: no such weights, damaged ones, or those of another model.

    Example:
        >>> import spit
        >>> model = spit.create_model("spit_tiny_16", pretrained=True, num_classes=10)
        >>> model.config == spit.create_model("spit_tiny_16", num_classes=10).config
        True
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a model, got {type(name).__name__}; a config goes to "
                        "spit.SpitModel(config)")
    if pretrained is True:
        checkpoint_folder(name, trained=True)  # raises for an unknown name
    config = model_config(name, gradients)
    asked: dict[str, Any] = dict(overrides)
    if num_classes is not None:
        asked["num_classes"] = num_classes
    if pretrained is False:
        return SpitModel(config.replace(**asked)).train(training)
    if gradients is not None:
        asked["gradients"] = gradients
    checkpoint = read_checkpoint(name if pretrained is True else pretrained)
    for key in ("tokenizer", "width", "depth", "heads"):
        expected, got = getattr(config, key), getattr(checkpoint.config, key)
        if expected != got:
            way_out = ("spit.load_model(...).with_tokenizer(...) runs it with another tokenizer" if key == "tokenizer"
                       else "spit.load_model(...) loads it as it is")
            raise WeightsError(f"{pretrained} is no {name}: expected {key} {expected}, got {got}; {way_out}")
    return checkpoint.build(checkpoint.config.replace(**asked)).train(training)


def load_model(source: str | PathLike[str], dtype: torch.dtype = torch.float32, num_classes: int | None = None, *,
               training: bool = False) -> SpitModel:
    """Load a trained model.

    Args:
        source: a name (``spit_tiny_16``, ``spit_tiny_16.deit_retrofit``), a folder that :func:`spit.save_model`
            wrote, a Hugging Face hub id ("owner/name", "owner/name@revision"), or a file with a timm ViT state dict or
            with a model of the authors' release (``.safetensors``, ``.pth``). A path that exists is never taken
            for a name or hub id. ``timm:NAME`` and ``hf:ID`` are backbones of timm and transformers with their own
            weights, wrapped by :func:`spit.wrap`.
        dtype: of the parameters, whatever they are on disk.
        num_classes: if it differs from the checkpoint's, the head is new and untrained; 0 returns the class token.
        training: return the model in training mode instead of evaluation mode.

    Raises:
        WeightsError: nothing there, a damaged or foreign file, or tensors that do not fit the config.
        MissingExtra: a hub id, and huggingface_hub is not installed.

    Example:
        >>> import spit
        >>> spit.load_model("spit_tiny_16").config.eval_size
        288
    """
    return read_checkpoint(source).build(dtype=dtype, num_classes=num_classes).train(training)


def read_checkpoint(source: str | PathLike[str]) -> weights.Checkpoint:
    """Config and weights of what :func:`load_model` takes: the one place where a string becomes weights."""
    if not isinstance(source, str | PathLike) or not str(source):
        raise TypeError(f"expected a name, a path or a hub id, got {source!r}")
    if isinstance(source, str) and source.startswith(BACKBONE_NAMES):
        from spit.seams.sources import read_wrapped  # which needs models

        return read_wrapped(source)
    path = Path(source)
    if (path.is_file() or path.suffix.lower() in weights.FILE_SUFFIXES) and not weights.is_saved_model(path.parent):
        return read_file(path)
    if not isinstance(source, str) or path.exists() or path.name != source:
        return weights.read(source)
    try:
        folder = checkpoint_folder(source, trained=True)
    except ValueError as error:
        raise ValueError(f"no folder {source}, and {error}") from None
    if folder is None:
        raise WeightsError(f"no trained weights of {source} come with spit; give {SOURCES}; or one of "
                           f"{', '.join(list_models(pretrained=True)) or 'none, since this install has no weights'}")
    return weights.read_files(folder.name, partial(_checkpoint_file, folder.name))
