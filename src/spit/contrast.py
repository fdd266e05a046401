"""Contrast: the Kumaraswamy curve of App. B for colours, and the arcsinh curve of the release for gradients."""

import math
from functools import lru_cache

import torch
from torch import Tensor

from spit.kernels.tables import CONTRAST_MEAN, CONTRAST_SHAPE, per_channel


def contrast(images: Tensor) -> Tensor:
    """Adjust the contrast of each channel by the Kumaraswamy CDF, and map it to [−1, 1] by 2y − 1 (App. B).

        y = 1 − (1 − x^λ)^b,   b = −ln 2 / ln(1 − μ^λ),   which maps 0 to 0, the mean μ to ½ and 1 to 1

    Shape:
        ``(B, C, H, W)`` in [0, 1] to ``(B, C, H, W)`` in [−1, 1]; values outside are clamped.

    Note:
        The paper gives μ and λ for R, G, B. Any other number of channels uses their mean. The slope is infinite at 0
        and 1 (λ < 1, b < 1), and infinity times the 0 of a masked pixel is NaN, so the derivative is set to 1 at
        exactly 0 and 1, and to 0 outside; the values are unchanged.
    """
    return 2 * _adjust(images, *_exponents(images.shape[1], images.dtype, images.device)) - 1


@lru_cache(maxsize=64)  # a CUDA graph cannot record a copy from the host
def _exponents(channels: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """λ and b of each channel."""
    with torch.inference_mode(False):
        mean, shape = (torch.from_numpy(per_channel(each, channels)) for each in (CONTRAST_MEAN, CONTRAST_SHAPE))
        outer = -math.log(2) / torch.log1p(-(mean**shape))
        return shape.to(device, dtype), outer.to(device, dtype)


def _adjust(x: Tensor, shape: Tensor, b: Tensor) -> Tensor:
    x = x.clamp(0, 1)
    if not x.requires_grad:
        return _curve(x, shape, b)
    inner = (x > 0) & (x < 1)
    return torch.where(inner, _curve(torch.where(inner, x, 0.5), shape, b), x)


def _curve(x: Tensor, shape: Tensor, b: Tensor) -> Tensor:
    rest = -torch.expm1(shape * x.log())  # 1 − x^λ without cancellation near 1
    return 1 - rest**b


def arcsinh(x: Tensor, factor: float) -> Tensor:
    """The contrast asinh(λx) / asinh(λ), which keeps −1, 0 and 1 and spreads small values; x itself for λ = 0."""
    return x if factor == 0 else torch.asinh(factor * x) / math.asinh(factor)
