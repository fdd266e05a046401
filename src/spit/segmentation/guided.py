"""The guided filter (He, Sun & Tang 2010): a soft map that follows the edges of its image."""

import torch
from torch import Tensor
from torch.nn import functional as F

RADIUS = 0.02  # of the longer side
SMOOTHNESS = 1e-3  # against the variance of colours in [0, 1]


def guided_filter(image: Tensor, values: Tensor, radius: int | None = None,
                  smoothness: float = SMOOTHNESS) -> Tensor:
    """In every window the values as a linear function of the colours, ``q = aᵀ I + b``, averaged over windows.

    ``a = (Σ + ε 1)⁻¹ (mean(I p) − mean(I) mean(p))`` and ``b = mean(p) − aᵀ mean(I)``, with Σ the covariance of
    the window's colours. In float64, so that differences of means keep their digits.

    Args:
        image: floats in [0, 1].
        values: the soft map p.
        radius: windows have ``2 · radius + 1`` pixels a side; a fiftieth of the longer side unless told.
        smoothness: ε; larger, fewer edges count.

    Shape:
        image ``(C, H, W)`` and values ``(H, W)`` to ``(H, W)``, in [0, 1].
    """
    if radius is None:
        radius = max(1, round(RADIUS * max(values.shape)))
    colors, soft = image.double(), values.double()
    channels = len(colors)
    products = (colors[:, None] * colors[None]).flatten(0, 1)
    means = _box(torch.cat([colors, soft[None], products, colors * soft]), radius)
    mean, mean_soft = means[:channels], means[channels]
    covariance = means[channels + 1 : -channels].unflatten(0, (channels, channels)) - mean[:, None] * mean[None]
    joint = means[-channels:] - mean * mean_soft  # (C, H, W)
    ridge = smoothness * torch.eye(channels, dtype=colors.dtype, device=colors.device)
    slope = torch.linalg.solve(covariance.permute(2, 3, 0, 1) + ridge, joint.permute(1, 2, 0)[..., None])[..., 0]
    slope = slope.permute(2, 0, 1)  # (C, H, W)
    offset = mean_soft - (slope * mean).sum(0)
    smooth = _box(torch.cat([slope, offset[None]]), radius)
    return ((smooth[:-1] * colors).sum(0) + smooth[-1]).clamp(0, 1).to(values.dtype)


def _box(maps: Tensor, radius: int) -> Tensor:
    """The mean over each pixel's window, of the pixels that exist. Shape: ``(K, H, W)`` to ``(K, H, W)``."""
    side = 2 * radius + 1
    rows = F.avg_pool2d(maps[None], (side, 1), 1, (radius, 0), count_include_pad=False)
    return F.avg_pool2d(rows, (1, side), 1, (0, radius), count_include_pad=False)[0]
