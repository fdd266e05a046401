"""The constants of contrast, diffusion and normalisation (App. B), and the tables of 8-bit values made of them."""

import math
from functools import lru_cache

import numpy as np

from spit.kernels import Array
from spit.kernels.rules import SCALE

CONTRAST_MEAN = (0.485, 0.456, 0.406)  # μ of App. B, for R, G, B
CONTRAST_SHAPE = (0.539, 0.507, 0.404)  # λ of App. B
GRADIENT_CONTRAST = 27.8  # λ of the release's arcsinh curve for gradients
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
DIFFUSION_STEPS = 4
CONDUCTION = 0.1
STEP_SIZE = 0.5
SATURATION = 2.718
FILLS = ("zero", "mean", "image", "crop")
NORMALIZATIONS = ("contrast", "imagenet", "none")


def per_channel(constants: tuple[float, float, float], channels: int) -> Array:
    """Constants for R, G, B as ``(C, 1, 1)`` float64; for any other number of channels, their mean."""
    values = constants if channels == 3 else (sum(constants) / 3,) * channels
    return np.array(values, np.float64)[:, None, None]


@lru_cache(maxsize=8)
def contrast_table(channels: int) -> Array:
    """The contrast curve of each channel at the 256 values of uint8, ±SCALE for ±1, ``(C, 256)`` int16."""
    table: Array = np.rint(_contrast(channels) * SCALE).astype(np.int16)
    return table


@lru_cache(maxsize=1)
def flux_table() -> Array:
    """γ · exp(−(Δ/κ)²) · Δ for every difference Δ from −2 to 2, int32."""
    difference = np.arange(-2 * SCALE, 2 * SCALE + 1) / SCALE
    flux = STEP_SIZE * np.exp(-((difference / CONDUCTION) ** 2)) * difference
    rounded: Array = np.rint(flux * SCALE).astype(np.int32)
    return rounded


@lru_cache(maxsize=8)
def normalization_table(normalization: str, channels: int) -> Array:
    """The normalised colours of each channel at the 256 values of uint8, ``(C, 256)`` float32."""
    if normalization == "contrast":
        curves: Array = _contrast(channels).astype(np.float32)
        return curves
    values = np.broadcast_to(np.arange(256, dtype=np.float32) / 255, (channels, 256))
    if normalization == "none":
        return values.copy()
    mean, std = (per_channel(constants, channels)[:, 0].astype(np.float32)
                 for constants in (IMAGENET_MEAN, IMAGENET_STD))
    normalized: Array = (values - mean) / std
    return normalized


def _contrast(channels: int) -> Array:
    """2 (1 − (1 − x^λ)^b) − 1, see :func:`spit.contrast.contrast`, ``(C, 256)`` float64."""
    mean, shape = (per_channel(constants, channels)[:, 0] for constants in (CONTRAST_MEAN, CONTRAST_SHAPE))
    x = np.arange(256) / 255
    b = -math.log(2) / np.log1p(-(mean**shape))
    with np.errstate(divide="ignore"):  # log 0
        rest: Array = -np.expm1(shape * np.log(x))
    curves: Array = 2 * (1 - rest**b) - 1
    return curves
