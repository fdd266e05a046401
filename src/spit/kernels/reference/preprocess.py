"""Contrast and diffusion of superpixel features (App. B), in integers."""

import torch
from torch import Tensor

from spit.kernels.rules import FRACTION, HALF, SCALE


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


def saturate(features: Tensor, push: int) -> Tensor:
    """Increase the saturation: move each channel away from the luma, within [−1, 1].

    The luma is 0.299 R + 0.587 G + 0.114 B. Products are rounded to the nearest, halves upwards.

    Args:
        push: ``2**FRACTION`` times the factor.

    Shape:
        ``(B, 3, H, W)`` int16 to the same.
    """
    channels = features.int()
    red, green, blue = channels.unbind(1)
    luma = ((1225 * red + 2404 * green + 467 * blue + HALF) >> FRACTION)[:, None]
    pushed: Tensor = luma + ((push * (channels - luma) + HALF) >> FRACTION)
    return pushed.clamp(-SCALE, SCALE).to(torch.int16)
