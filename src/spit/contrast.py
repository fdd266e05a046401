"""Contrast: the Kumaraswamy curve of App. B for colours, and the arcsinh curve of the release for gradients."""

import math

import torch
from torch import Tensor

CONTRAST_MEAN = (0.485, 0.456, 0.406)  # μ of App. B, for R, G, B
CONTRAST_SHAPE = (0.539, 0.507, 0.404)  # λ of App. B
GRADIENT_CONTRAST = 27.8  # λ of the release's arcsinh curve for gradients


def contrast(images: Tensor) -> Tensor:
    """Adjust the contrast of each channel and map it to [−1, 1] by 2y − 1 (App. B).

    Shape:
        ``(B, C, H, W)`` in [0, 1] to ``(B, C, H, W)`` in [−1, 1].

    Note:
        The paper gives constants for R, G, B. Any other number of channels uses their mean.
    """
    channels = images.shape[1]
    mean, shape = per_channel(CONTRAST_MEAN, channels), per_channel(CONTRAST_SHAPE, channels)
    return 2 * kumaraswamy(images, mean, shape) - 1


def kumaraswamy(x: Tensor, mean: Tensor | float, shape: Tensor | float) -> Tensor:
    """The reparametrised Kumaraswamy CDF (App. B), which maps 0 to 0, the mean μ to ½ and 1 to 1.

        1 − (1 − x^λ)^b,   b = −ln 2 / ln(1 − μ^λ)

    Args:
        x: values in [0, 1] of any floating dtype, which the result keeps. Values outside are clamped.
        mean: μ in (0, 1), broadcast against x.
        shape: λ > 0, broadcast against x.

    Note:
        The slope is infinite at 0 and 1 (λ < 1, b < 1), and infinity times the 0 of a masked pixel is NaN.
        The derivative is therefore set to 1 at exactly 0 and 1, and to 0 outside; the values are unchanged.
    """
    mean = torch.as_tensor(mean, dtype=torch.float64)
    shape = torch.as_tensor(shape, dtype=torch.float64)
    b, shape = (-math.log(2) / torch.log1p(-(mean**shape))).to(x), shape.to(x)
    x = x.clamp(0, 1)
    if not x.requires_grad:
        return _curve(x, shape, b)
    inner = (x > 0) & (x < 1)
    return torch.where(inner, _curve(torch.where(inner, x, 0.5), shape, b), x)


def _curve(x: Tensor, shape: Tensor, b: Tensor) -> Tensor:
    rest = -torch.expm1(shape * x.log())  # 1 − x^λ without cancellation near 1
    return 1 - rest**b


def per_channel(constants: tuple[float, float, float], channels: int) -> Tensor:
    """Constants for R, G, B as ``(C, 1, 1)`` float64; for any other number of channels, their mean."""
    values = constants if channels == 3 else (sum(constants) / 3,) * channels
    return torch.tensor(values, dtype=torch.float64)[:, None, None]


def arcsinh(x: Tensor, factor: float) -> Tensor:
    """The contrast asinh(λx) / asinh(λ), which keeps −1, 0 and 1 and spreads small values; x itself for λ = 0."""
    return x if factor == 0 else torch.asinh(factor * x) / math.asinh(factor)
