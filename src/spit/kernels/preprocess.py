"""What the backends on tensors share of the features that superpixels are made from (App. B)."""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from spit.kernels import tables
from spit.kernels.portable import saturate
from spit.kernels.rules import FRACTION
from spit.kernels.tables import DIFFUSION_STEPS, SATURATION


def in_turn(look_up: Callable[..., Tensor], diffuse: Callable[..., Tensor]) -> Callable[[Tensor, bool], Tensor]:
    """The ``superpixel_features`` of a backend, made from its other operations."""

    def superpixel_features(pixels: Tensor, saturated: bool) -> Tensor:
        """Contrast, saturation if asked for, then diffusion.

        Shape:
            ``(B, C, H, W)`` uint8, with three channels if saturated, to the same of int16.
        """
        features = look_up(pixels, contrast_table(pixels.shape[1], pixels.device))
        if saturated:
            features = saturate(features, round(SATURATION * 2**FRACTION))
        return diffuse(features, flux_table(pixels.device), DIFFUSION_STEPS)

    return superpixel_features


@lru_cache(maxsize=8)
def contrast_table(channels: int, device: torch.device) -> Tensor:
    """:func:`spit.kernels.tables.contrast_table` on a device."""
    return torch.from_numpy(tables.contrast_table(channels)).to(device)


@lru_cache(maxsize=8)
def flux_table(device: torch.device) -> Tensor:
    """:func:`spit.kernels.tables.flux_table` on a device."""
    return torch.from_numpy(tables.flux_table()).to(device)
