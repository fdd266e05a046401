"""timm's ViT state dicts as our models (Prop. 1)."""

import math
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn

from spit.config import ModelConfig
from spit.errors import WeightsError
from spit.interop.files import read_tensors, source_name
from spit.kernels.tables import IMAGENET_MEAN, IMAGENET_STD
from spit.model import SpitModel
from spit.weights import Checkpoint

BLOCK_NAMES = {  # timm's name inside a block: ours
    "norm1": "norm1",
    "attn.qkv": "attention.qkv",
    "attn.proj": "attention.projection",
    "ls1.gamma": "scale1.factor",
    "norm2": "norm2",
    "mlp.fc1": "mlp.inner",
    "mlp.fc2": "mlp.outer",
    "ls2.gamma": "scale2.factor",
}
VIT_NAME = re.compile(
    r"cls_token|pos_embed|patch_embed\.proj\.(weight|bias)|(norm|head)\.(weight|bias)"
    r"|blocks\.\d+\.((norm1|attn\.qkv|attn\.proj|norm2|mlp\.fc1|mlp\.fc2)\.(weight|bias)|ls[12]\.gamma)")


def from_timm(source: Mapping[str, Tensor] | nn.Module | str | PathLike[str], heads: int | None = None,
              mean: Sequence[float] | None = None, std: Sequence[float] | None = None,
              num_classes: int | None = None) -> SpitModel:
    """A timm ViT state dict as our model, with equal logits, in evaluation mode.

    Prop. 1 with c = 1: on square patches of the checkpoint's own size, φ's bilinear sampling is the identity, and the
    empirical position histogram (σ = 0) with one bin for each cell of the position grid is one-hot. So γ = [L, Q]
    with L the patch embedding and Q the position embedding, and the class token is ``cls_token + pos_embed[0]``.

    Args:
        source: a state dict, a timm module, or the path of a ``.safetensors`` or ``.pth`` file. The latter is read
            with ``weights_only=True``, so nothing is unpickled.
        heads: attention heads (default: the module's, or one for each 64 columns).
        mean: of the colours that the checkpoint was trained with (default: the module's ``pretrained_cfg``, or
            ImageNet's). Other values than ImageNet's are folded into γ, which is exact for patches that lie whole
            inside the image.
        std: their standard deviation, as ``mean``.
        num_classes: if it differs from the checkpoint's, the head is new and untrained; 0 returns the class token.

    Raises:
        WeightsError: the file cannot be read, or the checkpoint is not a plain ViT with a class token.

    Example:
        >>> import spit, torch
        >>> shapes = {"attn.qkv": (192, 64), "attn.proj": (64, 64), "mlp.fc1": (256, 64), "mlp.fc2": (64, 256)}
        >>> tensors = {f"blocks.0.{name}.weight": torch.randn(shape) for name, shape in shapes.items()}
        >>> tensors |= {f"blocks.0.{name}.bias": torch.zeros(shape[0]) for name, shape in shapes.items()}
        >>> for norm in ("blocks.0.norm1", "blocks.0.norm2", "norm"):
        ...     tensors |= {f"{norm}.weight": torch.ones(64), f"{norm}.bias": torch.zeros(64)}
        >>> tensors |= {"cls_token": torch.randn(1, 1, 64), "pos_embed": torch.randn(1, 5, 64),
        ...             "patch_embed.proj.weight": torch.randn(64, 3, 16, 16)}
        >>> spit.from_timm(tensors)(torch.rand(1, 3, 32, 32)).shape  # no head: the class token
        torch.Size([1, 64])
    """
    return read_timm(source, heads, mean, std).build(num_classes=num_classes).eval()


def read_timm(source: Mapping[str, Tensor] | nn.Module | str | PathLike[str], heads: int | None = None,
              mean: Sequence[float] | None = None, std: Sequence[float] | None = None,
              name: str | None = None) -> Checkpoint:
    """The checkpoint that :func:`from_timm` builds a model from; ``name`` is what messages call it."""
    tensors = read_tensors(source, "a timm ViT state dict")
    if isinstance(source, nn.Module):
        counts = (getattr(part, "num_heads", None) for part in source.modules())
        heads = heads or next((count for count in counts if isinstance(count, int)), None)
        described: Any = getattr(source, "pretrained_cfg", None) or {}
        mean, std = mean or described.get("mean"), std or described.get("std")
        _refuse_module(source)
    _refuse_variants(tensors)
    colors = tuple(mean or IMAGENET_MEAN), tuple(std or IMAGENET_STD)
    if any(len(one) != 3 for one in colors) or not all(value > 0 for value in colors[1]):
        raise ValueError(f"expected mean and std of 3 colours, std above 0, got {colors[0]} and {colors[1]}")
    name = name or source_name(source)
    try:
        return Checkpoint(name, _config(tensors, heads), _rename(tensors, *colors))
    except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError) as error:  # shapes that do not fit
        raise WeightsError(f"{name}: expected the state dict of a ViT, got a damaged one or of another model ({error})"
                           ) from error


def _refuse_variants(tensors: Mapping[str, Tensor]) -> None:
    foreign = [name for name in tensors if not VIT_NAME.fullmatch(name)]
    missing = [name for name in ("cls_token", "pos_embed", "patch_embed.proj.weight", "norm.weight",
                                 "blocks.0.attn.qkv.weight", "blocks.0.mlp.fc1.weight") if name not in tensors]
    if foreign or missing:
        more = f" and {len(foreign) - 4} more" if len(foreign) > 4 else ""
        has = f"it has {', '.join(foreign[:4])}{more}; " if foreign else ""
        lacks = f"it lacks {', '.join(missing)}; " if missing else ""
        raise WeightsError(f"expected the timm state dict of a plain ViT with a class token, but {has}{lacks}"
                           "spit.wrap(module) takes distilled, register, mean-pooled, rotary and gated variants")
    kernel = tuple(tensors["patch_embed.proj.weight"].shape)
    if len(kernel) != 4 or kernel[2] != kernel[3]:
        raise WeightsError(f"expected square patches, got patch_embed.proj.weight of shape {kernel}")
    if kernel[1] != 3:
        raise WeightsError(f"expected a checkpoint for 3 colours, got patch_embed.proj.weight of shape {kernel}")


def _refuse_module(module: nn.Module) -> None:
    """What a state dict does not tell."""
    pool, eps = getattr(module, "global_pool", "token"), getattr(getattr(module, "norm", None), "eps", 1e-6)
    if pool not in ("token", "", None) or eps != 1e-6:
        raise WeightsError(f"expected a ViT that reads its class token after a LayerNorm with eps 1e-06, "
                           f"got global_pool={pool!r} and eps {eps}")


def _position_of_class(tensors: Mapping[str, Tensor]) -> int:
    """1 where pos_embed begins with the class token's position, 0 where it has none (DeiT III)."""
    rows = tensors["pos_embed"].shape[-2]
    return 0 if math.isqrt(rows) ** 2 == rows and rows > 1 else 1


def _config(tensors: Mapping[str, Tensor], heads: int | None) -> ModelConfig:
    width, channels, patch, _ = tensors["patch_embed.proj.weight"].shape
    hidden = len(tensors["blocks.0.mlp.fc1.weight"])
    bins = math.isqrt(cells := tensors["pos_embed"].shape[-2] - _position_of_class(tensors))
    if bins**2 != cells:
        raise WeightsError(f"expected a square grid of positions, got pos_embed of shape "
                           f"{tuple(tensors['pos_embed'].shape)}; resample it to a square first")
    if heads is None and width % 64:
        raise WeightsError(f"the width {width} does not tell the number of heads; give from_timm(..., heads=)")
    return ModelConfig(
        tokenizer="patch",
        tokenizer_options={"size": patch},
        channels=channels,
        resolution=patch,
        position_bins=bins,
        position_sigma=0.0,
        gradients=False,
        normalization="imagenet",
        fill="crop",
        width=width,
        depth=1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("blocks.")),
        heads=heads or width // 64,
        mlp_ratio=hidden / width,
        qkv_bias="blocks.0.attn.qkv.bias" in tensors,
        layer_scale=1e-5 if "blocks.0.ls1.gamma" in tensors else None,
        num_classes=len(tensors["head.weight"]) if "head.weight" in tensors else 0,
    )


def _rename(tensors: Mapping[str, Tensor], mean: tuple[float, ...], std: tuple[float, ...]) -> dict[str, Tensor]:
    ours = {}
    for name, tensor in tensors.items():
        if name.startswith("blocks."):
            _, index, inside = name.split(".", 2)
            stem = inside if inside in BLOCK_NAMES else inside.rpartition(".")[0]
            ours[f"backbone.blocks.{index}.{BLOCK_NAMES[stem]}{inside.removeprefix(stem)}"] = tensor
        elif name.startswith("norm."):
            ours[f"backbone.{name}"] = tensor
        elif name.startswith("head."):
            ours[name.replace("head.", "head.linear.")] = tensor
    kernel = tensors["patch_embed.proj.weight"].float()  # (D, C, p, p)
    bias = tensors.get("patch_embed.proj.bias", kernel.new_zeros(len(kernel))).float()
    if (mean, std) != (IMAGENET_MEAN, IMAGENET_STD):
        kernel, bias = _fold(kernel, bias, mean, std)
    positions = tensors["pos_embed"].float().flatten(0, -2)  # (1 + bins², D)
    class_token = tensors["cls_token"].float().flatten()
    if _position_of_class(tensors):
        class_token, positions = class_token + positions[0], positions[1:]
    ours["embedder.projection.weight"] = torch.cat([kernel.flatten(1), positions.T], 1).contiguous()
    ours["embedder.projection.bias"] = bias
    ours["embedder.class_token"] = class_token
    return ours


def _fold(kernel: Tensor, bias: Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """The kernel that answers to ImageNet-normalised colours as this one does to its own.

    ``(x − m)/s = (z·s₀ + m₀ − m)/s`` for ``z = (x − m₀)/s₀``.
    """
    own_mean, own_std, base_mean, base_std = (
        torch.tensor(values)[:, None, None] for values in (mean, std, IMAGENET_MEAN, IMAGENET_STD))
    shift = (kernel * ((base_mean - own_mean) / own_std)).sum((1, 2, 3))
    return kernel * (base_std / own_std), bias + shift
