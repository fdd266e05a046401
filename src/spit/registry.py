"""The named models: {vit, rvit, spit}_{tiny, small, base, large}_16."""

import difflib
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

from spit import weights
from spit.config import ModelConfig
from spit.errors import WeightsError
from spit.model import SpitModel

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
MODELS = {f"{family}_{size}_16": (family, size) for family in TOKENIZERS for size in SIZES}
CHECKPOINTS = Path(__file__).parent / "checkpoints"


class Overrides(TypedDict, total=False):
    """The fields of :class:`~spit.config.ModelConfig` that a user may set beside the named ones."""

    tokenizer_options: dict[str, Any]
    channels: int
    resolution: int
    position_bins: int
    position_sigma: float
    gradient_bins: int
    gradient_sigma: float
    normalization: str
    fill: str
    mlp_ratio: float
    qkv_bias: bool
    layer_scale: float | None
    drop_path: float
    token_budget: int | None


def list_models() -> list[str]:
    """The names that :func:`create_model` knows, family by family, small to large."""
    return list(MODELS)


def model_config(name: str, gradients: bool = True) -> ModelConfig:
    """The config of a named model, as published.

    Queries, keys and values have no bias, LayerScale begins at 1e-5, and the histograms' kernels
    have σ = 0.025, or 0.05 for base models with gradients.

    Raises:
        ValueError: an unknown name; the nearest ones are named.
    """
    if name not in MODELS:
        near = difflib.get_close_matches(str(name), MODELS, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else "spit.list_models() names them all"
        raise ValueError(f"unknown model {name!r}; {hint}")
    family, size = MODELS[name]
    tokenizer, options = TOKENIZERS[family]
    width, depth, heads = SIZES[size]
    sigma = 0.05 if size == "base" and gradients else 0.025
    return ModelConfig(tokenizer=tokenizer, tokenizer_options=dict(options), position_sigma=sigma, gradient_sigma=sigma,
                       gradients=gradients, width=width, depth=depth, heads=heads)


def create_model(name: str, pretrained: bool | str | PathLike[str] = False, num_classes: int | None = None,
                 gradients: bool | None = None, **overrides: Unpack[Overrides]) -> SpitModel:
    """Make a model by name, in evaluation mode.

    Args:
        name: one of :func:`list_models`.
        pretrained: True for the weights that come with spit; a folder or a Hugging Face hub id
            ("owner/name", "owner/name@revision") for others. The checkpoint's own config then stands
            where nothing else is asked for; its size and tokenizer must be the name's.
        num_classes: logits, 1000 or the checkpoint's unless told; 0 gives the class token. Where it
            differs from the checkpoint's, the head is a fresh, untrained one.
        gradients: whether φ adds gradient histograms; True or the checkpoint's unless told.
        overrides: other fields of :class:`~spit.config.ModelConfig`.

    Raises:
        ValueError: an unknown name or option; the nearest known ones are named.
        WeightsError: no such weights, damaged ones, or those of another model.
    """
    config = model_config(name, True if gradients is None else gradients)
    asked: dict[str, Any] = dict(overrides)
    for key, value in (("num_classes", num_classes), ("gradients", gradients)):
        if value is not None:
            asked[key] = value
    if pretrained is False:
        return SpitModel(config.replace(**asked)).eval()
    checkpoint = weights.read(_source(name, pretrained))
    for key in ("tokenizer", "width", "depth", "heads"):
        expected, got = getattr(config, key), getattr(checkpoint.config, key)
        if expected != got:
            way_out = ("spit.load_model(...).with_tokenizer(...) runs it with another tokenizer" if key == "tokenizer"
                       else "spit.load_model(...) loads it as it is")
            raise WeightsError(f"{pretrained} is no {name}: expected {key} {expected}, got {got}; {way_out}")
    return checkpoint.build(checkpoint.config.replace(**asked)).eval()


def _source(name: str, pretrained: bool | str | PathLike[str]) -> str | PathLike[str]:
    if not isinstance(pretrained, bool):
        return pretrained
    folder = CHECKPOINTS / name
    if not (folder / weights.CONFIG).is_file():
        raise WeightsError(f"no weights of {name} come with spit; give a folder or a hub id, "
                           f"create_model({name!r}, pretrained=\"owner/name\"), or bring a ViT with spit.from_timm")
    return folder
