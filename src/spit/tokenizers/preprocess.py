"""The features that superpixels are made from (App. B): contrast, then anisotropic diffusion.

They are integers, ±SCALE for ±1, computed from 8-bit pixels by tables and integer arithmetic, so that all
devices get the same values. φ uses the same contrast, but no diffusion.
"""

from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from spit import kernels
from spit.contrast import contrast
from spit.images import quantize
from spit.kernels import SCALE
from spit.kernels.rules import FRACTION, HALF

DIFFUSION_STEPS = 4
CONDUCTION = 0.1
STEP_SIZE = 0.5
SATURATION = 2.718

Features = Literal["paper", "published", "saturated"]


def superpixel_features(block: Tensor, features: Features) -> Tensor:
    """The features that the superpixel tokenizer compares.

    ``"paper"``: the channels with contrast, diffused. ``"published"``: the four channels of the authors' code,
    saturated YCbCr with arcsinh contrast, diffused, and the gradient's magnitude. ``"saturated"``: as
    ``"paper"``, with the saturation of the published code before the diffusion; objects differ in hue more than
    in brightness, so that regions follow them better (docs/superpixels.md). A grey image counts as RGB with
    three equal channels.

    Shape:
        ``(B, C, H, W)`` image to ``(B, C', H, W)`` int16.
    """
    pixels = quantize(block)
    if pixels.shape[1] == 1:
        pixels = pixels.expand(-1, 3, -1, -1)
    elif features != "paper" and pixels.shape[1] != 3:
        raise ValueError(f"features={features!r} needs images with 1 or 3 channels, got {pixels.shape[1]}; "
                         "features='paper' takes any number")
    device = pixels.device
    adjusted = kernels.look_up(pixels, _contrast_table(pixels.shape[1], device))
    flux = _flux_table(device)
    if features == "paper":
        return kernels.diffuse(adjusted, flux, DIFFUSION_STEPS)
    if features == "saturated":
        return kernels.diffuse(kernels.saturate(adjusted, round(SATURATION * 2**FRACTION)), flux, DIFFUSION_STEPS)
    return torch.cat([kernels.diffuse(_saturated_ycbcr(adjusted), flux, DIFFUSION_STEPS), _edges(pixels)], dim=1)


@lru_cache(maxsize=8)
def _contrast_table(channels: int, device: torch.device) -> Tensor:
    """The contrast curve of each channel at the 256 values of uint8."""
    values = torch.arange(256, dtype=torch.float64) / 255
    return _fixed_point(contrast(values.expand(1, channels, 1, 256))[0, :, 0], device)


@lru_cache(maxsize=8)
def _flux_table(device: torch.device) -> Tensor:
    """γ · exp(−(Δ/κ)²) · Δ for every difference Δ from −2 to 2."""
    difference = torch.arange(-2 * SCALE, 2 * SCALE + 1, dtype=torch.float64) / SCALE
    flux = STEP_SIZE * torch.exp(-((difference / CONDUCTION) ** 2)) * difference
    return (flux * SCALE).round().int().to(device)


def _saturated_ycbcr(adjusted: Tensor) -> Tensor:
    """Luma, and the chroma with its saturation increased by e around the luma; then arcsinh contrast."""
    red, green, blue = adjusted.int().unbind(1)
    luma = (1225 * red + 2404 * green + 467 * blue + HALF) >> FRACTION  # 0.299, 0.587 and 0.114
    # Cb = (B − Y) / (2 − 2·0.114) and Cr = (R − Y) / (2 − 2·0.299).
    blueness = (round(SATURATION * 2**FRACTION / 1.772) * (blue - luma) + HALF) >> FRACTION
    redness = (round(SATURATION * 2**FRACTION / 1.402) * (red - luma) + HALF) >> FRACTION
    ycbcr = torch.stack([luma, blueness, redness], dim=1).clamp(-SCALE, SCALE)
    return _arcsinh_table(10.0, SCALE, adjusted.device)[(ycbcr + SCALE).long()]


def _edges(pixels: Tensor) -> Tensor:
    """Scharr magnitude of the grey image with arcsinh contrast, mapped to [−1, 1]."""
    padded = pad(pixels.float().sum(1, keepdim=True), (1, 1, 1, 1), mode="replicate").int()
    smooth_x = 3 * padded[..., :-2] + 10 * padded[..., 1:-1] + 3 * padded[..., 2:]
    smooth_y = 3 * padded[..., :-2, :] + 10 * padded[..., 1:-1, :] + 3 * padded[..., 2:, :]
    dy = smooth_x[..., 2:, :] - smooth_x[..., :-2, :]
    dx = smooth_y[..., 2:] - smooth_y[..., :-2]
    magnitude = kernels.exact_sqrt((dy * dy + dx * dx).float()).int()
    largest = 16 * 3 * 255
    curve = _arcsinh_table(27.8, largest, pixels.device)[largest:]  # magnitudes are not negative
    return (2 * curve - SCALE)[magnitude.clamp(max=largest).long()]


@lru_cache(maxsize=8)
def _arcsinh_table(factor: float, largest: int, device: torch.device) -> Tensor:
    """asinh(λx) / asinh(λ) for x = −1 … 1 in steps of 1/largest."""
    x = torch.arange(-largest, largest + 1, dtype=torch.float64) / largest
    return _fixed_point(torch.asinh(factor * x) / torch.asinh(torch.tensor(factor, dtype=torch.float64)), device)


def _fixed_point(x: Tensor, device: torch.device) -> Tensor:
    return (x * SCALE).round().to(device, torch.int16)
