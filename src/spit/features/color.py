"""Colour: the normalised pixels of a region at a fixed resolution (§2.3, App. B)."""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from spit import kernels
from spit.contrast import contrast
from spit.kernels.tables import IMAGENET_MEAN, IMAGENET_STD, normalization_table, per_channel


def standardize(images: Tensor) -> Tensor:
    """(x − mean) / std with the constants of ImageNet, as timm's ViTs expect.

    Shape:
        ``(B, C, H, W)`` in [0, 1] to ``(B, C, H, W)``.

    Note:
        Any number of channels other than 3 uses the mean of the three constants.
    """
    mean, std = _constants(images.shape[1], images.dtype, images.device)
    return (images - mean) / std


@lru_cache(maxsize=64)  # a CUDA graph cannot record a copy from the host
def _constants(channels: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False):
        mean, std = (torch.from_numpy(per_channel(each, channels)) for each in (IMAGENET_MEAN, IMAGENET_STD))
        return mean.to(device, dtype), std.to(device, dtype)


NORMALIZATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "contrast": contrast,
    "imagenet": standardize,
    "none": lambda images: images,
}


def color_features(
    images: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, resolution: int, normalization: str,
    fill: str = "zero"
) -> Tensor:
    """ξ^col: the box of each region at K×K, normalised (§2.3).

    Args:
        fill: value of the pixels in the box that belong to other regions. ``"zero"``: 0, as in the paper.
            ``"mean"``: the region's own mean, so that its outline is not an edge in the patch. ``"image"``: the
            pixels themselves; nothing is masked. Pixels outside the image are 0, or the mean.

    Shape:
        images ``(B, C, H, W)`` uint8 or in [0, 1], labels ``(B, H, W)``, offsets ``(B + 1,)``, boxes
        ``(ΣN, 4)`` to ``(ΣN, C·K·K)``, channel by channel.
    """
    normalized = normalize(images, normalization)
    if fill != "mean":
        masked = fill == "zero"
        return kernels.color_patches(normalized, labels, offsets, boxes, resolution, masked).flatten(1)
    everywhere = torch.ones_like(normalized[:, :1])
    patches = kernels.color_patches(torch.cat([normalized, everywhere], 1), labels, offsets, boxes, resolution)
    colors, own = patches[:, :-1], patches[:, -1:]  # how much of each sample is the region's
    mean = colors.sum((2, 3), keepdim=True) / own.sum((2, 3), keepdim=True).clamp_min(1e-6)
    return (colors + (1 - own) * mean).flatten(1)


def normalize(images: Tensor, normalization: str) -> Tensor:
    """The colours, from uint8 or floats in [0, 1], in one of the ways of ``NORMALIZATIONS``."""
    colors, table = prepare(images, normalization)
    return colors if table is None else kernels.look_up(colors, table)


def prepare(images: Tensor, normalization: str) -> tuple[Tensor, Tensor | None]:
    """The normalised colours and None; or uint8 images unchanged and the table that normalises them."""
    if images.dtype == torch.uint8:
        return images, _table(normalization, images.shape[1], images.device)
    return NORMALIZATIONS[normalization](images), None


@lru_cache(maxsize=8)
def _table(normalization: str, channels: int, device: torch.device) -> Tensor:
    """The normalisation of each channel at the 256 values of uint8, ``(C, 256)`` float32."""
    return torch.from_numpy(normalization_table(normalization, channels)).to(device)
