"""Checkpoints of the authors' release as our models (docs/published.md)."""

import math
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from torch import Tensor

from spit.config import ModelConfig
from spit.errors import WeightsError
from spit.interop.files import read_tensors, source_name
from spit.interop.published.options import TOKENIZERS
from spit.model import SpitModel
from spit.options import check_choice
from spit.weights import Checkpoint

NAMES = {  # the release's name: ours
    "embedder.cls_token": "embedder.class_token",
    "embedder.embedder.linear.weight": "embedder.projection.weight",
    "embedder.embedder.linear.bias": "embedder.projection.bias",
    "norm.weight": "backbone.norm.weight",
    "norm.bias": "backbone.norm.bias",
    "head.weight": "head.linear.weight",
    "head.bias": "head.linear.bias",
}
BLOCK_NAMES = {  # inside a block
    **{f"{norm}.{part}": f"{norm}.{part}" for norm in ("norm1", "norm2") for part in ("weight", "bias")},
    "ls1.lambda_": "scale1.factor",
    "ls2.lambda_": "scale2.factor",
    "att.qkv.linear.weight": "attention.qkv.weight",
    "att.proj.linear.weight": "attention.projection.weight",
    "att.proj.linear.bias": "attention.projection.bias",
    "mlp.L1.linear.weight": "mlp.inner.weight",
    "mlp.L1.linear.bias": "mlp.inner.bias",
    "mlp.L2.linear.weight": "mlp.outer.weight",
    "mlp.L2.linear.bias": "mlp.outer.bias",
}
SIZE = 256  # of the images that the paper's models are pre-trained on (App. C)
EMBEDDER = "embedder.embedder.linear.weight"  # which no timm ViT state dict has
BLOCK = re.compile(r"blocks\.(\d+)\.(.+)")
FAMILIES = {"spit": "superpixel", "rvit": "voronoi", "vit": "patch"}
FAMILY = re.compile("(?<![a-z])(spit|rvit|vit)(?![a-z])")


def published_options(tokenizer: str, gradients: bool, width: int) -> dict[str, Any]:
    """The options of :class:`~spit.ModelConfig` that the release's models have in common, with their τ and σ.

    Args:
        tokenizer: "superpixel" (SPiT), "voronoi" (RViT) or "patch" (ViT).

    Example:
        >>> import spit
        >>> options = published_options("superpixel", gradients=True, width=768)
        >>> spit.create_model("spit_base_16.paper", **options).config.tokenizer
        'published'
    """
    options: dict[str, dict[str, Any]] = {
        "patch": {"size": 16},
        "voronoi": {},
        "superpixel": {"levels": 4, "compactness": 0.0 if gradients else 0.1},
    }
    check_choice("tokenizer", tokenizer, options)
    sigma = 0.05 if gradients and width == 768 else 0.025
    return {"tokenizer": TOKENIZERS[tokenizer], "tokenizer_options": options[tokenizer], "extractor": "published",
            "gradients": gradients, "position_sigma": sigma, "gradient_sigma": sigma, "qkv_bias": False,
            "layer_scale": 1e-5, "train_size": SIZE, "eval_size": SIZE}


def from_published(source: Mapping[str, Tensor] | str | PathLike[str], tokenizer: str | None = None,
                   heads: int | None = None, sigma: float | None = None, size: int | None = None,
                   num_classes: int | None = None) -> SpitModel:
    """A checkpoint of the authors' release as our model, in evaluation mode.

    Width, depth and gradients are read from names and shapes. The model has the release's tokenizer and features, so it
    computes what the release computes for one image without padding.

    Args:
        source: a state dict, or the path of a ``.pth`` or ``.safetensors`` file. The former is read with
            ``weights_only=True``, so nothing is unpickled.
        tokenizer: "superpixel" (SPiT), "voronoi" (RViT) or "patch" (ViT), which the tensors do not tell (default: by
            "spit", "rvit" or "vit" in the file's name, or "superpixel").
        heads: attention heads (default: one for each 64 columns).
        sigma: bandwidth of the histograms (default: 0.05 for width 768 with gradients, else 0.025).
        size: side of the images that it was trained on, at which it is evaluated (default: 256; a fine-tuned one has
            384). Images of any size can be given.
        num_classes: if it differs from the checkpoint's, the head is new and untrained; 0 returns the class token.

    Raises:
        WeightsError: the file cannot be read, or holds other tensors than the release's.

    Example:
        >>> import spit
        >>> from spit.interop.published.loader import published_names, published_options
        >>> options = published_options("superpixel", gradients=True, width=192)
        >>> model = spit.create_model("spit_tiny_16.paper", depth=1, **options)
        >>> ours = model.state_dict()
        >>> tensors = {theirs: ours[name] for theirs, name in published_names(depth=1).items()}
        >>> spit.from_published(tensors).config == model.config
        True
    """
    return read_published(source, tokenizer, heads, sigma, size).build(num_classes=num_classes).eval()


def read_published(source: Mapping[str, Tensor] | str | PathLike[str], tokenizer: str | None = None,
                   heads: int | None = None, sigma: float | None = None, size: int | None = None,
                   name: str | None = None) -> Checkpoint:
    """The checkpoint that :func:`from_published` builds a model from; ``name`` is the file that the tensors are of."""
    tensors = read_tensors(source, "a checkpoint of the authors' release")
    name = name or source_name(source)
    if "patch_embed.proj.weight" in tensors:
        raise WeightsError(f"{name}: expected a model of the authors' release, got a timm ViT state dict; "
                           "spit.from_timm loads it")
    depth = 1 + max((int(found[1]) for found in map(BLOCK.fullmatch, tensors) if found), default=-1)
    names = published_names(depth)
    wrong = [f"{one} is missing" for one in names if one not in tensors]
    wrong += [f"{one} is unexpected" for one in tensors if one not in names]
    if wrong or depth == 0:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise WeightsError(f"{name}: expected the names of the authors' release, but {'; '.join(wrong[:3])}{more}")
    config = _config(tensors, depth, tokenizer or _family(name), heads, sigma, name)
    if size is not None:
        config = config.replace(train_size=size, eval_size=size)
    return Checkpoint(name, config, {ours: tensors[theirs] for theirs, ours in names.items()})


def is_published(tensors: Mapping[str, Tensor]) -> bool:
    """Whether a state dict has the names of the release."""
    return EMBEDDER in tensors


def published_names(depth: int) -> dict[str, str]:
    """The release's name of every tensor of a model to ours."""
    return NAMES | {f"blocks.{index}.{theirs}": f"backbone.blocks.{index}.{ours}" for index in range(depth)
                    for theirs, ours in BLOCK_NAMES.items()}


def _family(name: str) -> str:
    """The tokenizer that a file's name tells, or superpixels."""
    found = FAMILY.search(Path(name).name.lower())
    return FAMILIES[found[0]] if found else "superpixel"


def _config(tensors: Mapping[str, Tensor], depth: int, tokenizer: str, heads: int | None, sigma: float | None,
            name: str) -> ModelConfig:
    shape = tuple(tensors[EMBEDDER].shape)
    bins, gradients = next(((math.isqrt(shape[-1] // channels), channels == 5) for channels in (4, 5)
                            if shape[-1] == channels * math.isqrt(shape[-1] // channels) ** 2), (0, False))
    if len(shape) != 2 or bins == 0:
        raise WeightsError(f"{name}: expected {EMBEDDER} of 4 or 5 channels of square patches, got shape {shape}")
    width = shape[0]
    if heads is None and width % 64:
        raise WeightsError(f"{name}: the width {width} does not tell the number of heads; give "
                           "from_published(..., heads=), or spit convert --heads")
    options = published_options(tokenizer, gradients, width)
    if sigma is not None:
        options |= {"position_sigma": sigma, "gradient_sigma": sigma}
    return ModelConfig(
        **options, resolution=bins, position_bins=bins, gradient_bins=bins, width=width, depth=depth,
        heads=heads or width // 64, mlp_ratio=len(tensors["blocks.0.mlp.L1.linear.bias"]) / width,
        num_classes=len(tensors["head.bias"]))
