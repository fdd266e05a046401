"""The features that the release's superpixels are made from, as integers of ±ONE (docs/published.md)."""

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from spit import kernels
from spit.contrast import arcsinh, contrast
from spit.images import quantize
from spit.interop.published.contraction import ONE
from spit.kernels import SCALE
from spit.kernels.tables import CONDUCTION, DIFFUSION_STEPS, GRADIENT_CONTRAST, SATURATION, STEP_SIZE
from spit.tokenizers.preprocess import rgb

COLOR_CONTRAST = 10.0
STEEPEST = 16 * 3 * 255  # largest Scharr component of a sum of three 8-bit channels
LONGEST = math.sqrt(2) * float(arcsinh(torch.tensor(13 / 16, dtype=torch.float64), GRADIENT_CONTRAST))  # in a window


def published_features(block: Tensor) -> Tensor:
    """Diffused saturated YCbCr, and the gradient's length.

    Shape:
        ``(B, C, H, W)`` image with 1 or 3 channels to ``(B, 4, H, W)`` int32, ±ONE for ±1.
    """
    pixels = rgb(quantize(block), "the tokenizer published")
    return torch.cat([_diffuse(_ycbcr(pixels)), _edges(pixels)], dim=1).int()


def coarse(features: Tensor) -> Tensor:
    """Features of ±ONE for ±1 as int16 with ±SCALE for ±1, rounded."""
    step = ONE // SCALE
    return ((features + step // 2) // step).to(torch.int16)


def _ycbcr(pixels: Tensor) -> Tensor:
    """Contrast, saturation around the luma within the gamut, YCbCr, and arcsinh contrast; ``(B, 3, H, W)`` int64."""
    colors = kernels.look_up(pixels, _unit_contrast_table(pixels.device))  # 0 to ONE
    luma = _luma(colors)
    colors = (luma + _times(colors - luma, SATURATION)).clamp(0, ONE)
    luma = _luma(colors)
    chroma = torch.cat([_times(colors[:, 2:] - luma, 0.564), _times(colors[:, :1] - luma, 0.713)], 1)
    return _interpolate(torch.cat([2 * luma - ONE, 2 * chroma], 1), _published_tables(pixels.device)[0])


def _luma(colors: Tensor) -> Tensor:
    red, green, blue = colors.unbind(1)
    return ((299 * red + 587 * green + 114 * blue + 500) // 1000)[:, None]


def _times(x: Tensor, factor: float) -> Tensor:
    """Integers times a factor of three decimals, rounded."""
    return (round(1000 * factor) * x + 500) // 1000


def _diffuse(features: Tensor) -> Tensor:
    """As :func:`spit.kernels.diffuse`, at the scale of the release's features."""
    flux = _published_tables(features.device)[1]
    for _ in range(DIFFUSION_STEPS):
        south, east = (_interpolate(features.diff(dim=dim).clamp(-ONE, ONE), flux) for dim in (2, 3))
        features = features + pad(south, (0, 0, 0, 1)) - pad(south, (0, 0, 1, 0))
        features = (features + pad(east, (0, 1)) - pad(east, (1, 0))).clamp(-ONE, ONE)
    return features


def _edges(pixels: Tensor) -> Tensor:
    """Length of the two Scharr components of the grey image after their contrast, mapped to [−1, 1]."""
    padded = pad(pixels.float().sum(1, keepdim=True), (1, 1, 1, 1), mode="replicate").int()
    smooth_x = 3 * padded[..., :-2] + 10 * padded[..., 1:-1] + 3 * padded[..., 2:]
    smooth_y = 3 * padded[..., :-2, :] + 10 * padded[..., 1:-1, :] + 3 * padded[..., 2:, :]
    curve = _published_tables(pixels.device)[2]
    dy = curve[(smooth_x[..., 2:, :] - smooth_x[..., :-2, :] + STEEPEST).long()]
    dx = curve[(smooth_y[..., 2:] - smooth_y[..., :-2] + STEEPEST).long()]
    return ((dy * dy + dx * dx).double().sqrt() * (2 / LONGEST)).round().long() - ONE


def _interpolate(x: Tensor, table: Tensor) -> Tensor:
    """A function on [−ONE, ONE] from its values at equal steps, linear between them, rounded."""
    step = 2 * ONE // (len(table) - 2)
    index, rest = (x + ONE) // step, (x + ONE) % step
    low = table[index]
    return low + ((table[index + 1] - low) * rest + step // 2) // step


@lru_cache(maxsize=8)
def _unit_contrast_table(device: torch.device) -> Tensor:
    """The contrast curve of R, G and B at the 256 values of uint8, 0 to ONE."""
    values = torch.arange(256, dtype=torch.float64) / 255
    return ((contrast(values.expand(1, 3, 1, 256))[0, :, 0] + 1) / 2 * ONE).round().long().to(device)


@lru_cache(maxsize=8)
def _published_tables(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The arcsinh contrast of YCbCr and the flux of the diffusion, for :func:`_interpolate`, and the contrast of all
    gradients.
    """
    x = torch.arange(-(2**16), 2**16 + 2, dtype=torch.float64) / 2**16
    flux = STEP_SIZE * torch.exp(-((x / CONDUCTION) ** 2)) * x
    slopes = torch.arange(-STEEPEST, STEEPEST + 1, dtype=torch.float64) / STEEPEST
    curves = arcsinh(x, COLOR_CONTRAST), flux, arcsinh(slopes, GRADIENT_CONTRAST)
    return tuple((curve * ONE).round().long().to(device) for curve in curves)  # type: ignore[return-value]
