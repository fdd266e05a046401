"""Contrast and diffusion of superpixel features (App. B), in integers."""

import torch
from torch import Tensor

from spit.kernels.rules import SCALE


def look_up(images: Tensor, table: Tensor) -> Tensor:
    """Look up every 8-bit value in the table of its channel.

    Shape:
        images ``(B, C, H, W)`` uint8 and table ``(C, 256)`` of any dtype to ``(B, C, H, W)`` of that dtype.
    """
    channel = torch.arange(images.shape[1])[:, None, None]
    return table[channel, images.long()]


def diffuse(features: Tensor, flux: Tensor, steps: int) -> Tensor:
    """Perona–Malik diffusion: smooths inside regions, stops at edges (App. B).

    One step moves ``γ g(Δ) Δ`` over every edge of the grid, ``g(Δ) = exp(−(Δ/κ)²)``, all edges at
    once, and clips to [−1, 1]. The flux is a table over the integer difference Δ.

    Shape:
        features ``(B, C, H, W)`` int16, flux ``(4 · SCALE + 1,)`` int32 for Δ from −2·SCALE.
    """
    x = features.int()
    for _ in range(steps):
        south = flux[x.diff(dim=2) + 2 * SCALE]
        east = flux[x.diff(dim=3) + 2 * SCALE]
        x = x.clone()
        x[:, :, :-1] += south
        x[:, :, 1:] -= south
        x[:, :, :, :-1] += east
        x[:, :, :, 1:] -= east
        x = x.clamp(-SCALE, SCALE)
    return x.to(torch.int16)
