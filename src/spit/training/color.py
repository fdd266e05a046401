"""Colour operations of RandAugment and 3-Augment on batches, each image with its own strength.

They are our own for the reasons in :mod:`spit.training.augment`; the tests compare them with Pillow's.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

COLOR = ("identity", "autocontrast", "equalize", "solarize", "posterize", "saturation", "contrast", "brightness",
         "sharpness")
"""Operations of RandAugment, beside the geometric ones."""
THREE = ("grayscale", "solarization", "blur")
"""Operations of 3-Augment (DeiT III); an image draws one."""
LUMA = (0.299, 0.587, 0.114)


def change_colors(name: str, images: Tensor, strength: Tensor) -> Tensor:
    """Run one operation.

    Args:
        strength: from −1 to 1; operations without a direction use its absolute value.

    Shape:
        images ``(B, C, H, W)`` float in [0, 1] and strength ``(B,)`` to ``(B, C, H, W)``.
    """
    s = strength[:, None, None, None]
    if name == "identity":
        return images
    if name == "autocontrast":
        low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
        flat = high - low < 0.5 / 255  # one level, up to the rounding of interpolation
        return torch.where(flat, images, (images - low) / (high - low).clamp_min(0.5 / 255))
    if name == "equalize":
        return _equalize(images)
    if name in ("solarize", "solarization"):
        # 256 levels: at strength 0 white stays white.
        threshold = (1 - s.abs()) * 256 / 255 if name == "solarize" else torch.full_like(s, 0.5)
        return torch.where(images >= threshold, 1 - images, images)
    if name == "posterize":
        levels = 2 ** (8 - (4 * s.abs()).round())
        return ((images * 255).round() * levels / 256).floor() * 256 / levels / 255
    if name == "grayscale":
        return luma(images).expand_as(images)
    if name == "blur":
        return _blur(images)
    if name == "sharpness":
        return _blend(_blur(images), images, 1 + 0.9 * s)
    if name == "saturation":
        return _blend(luma(images), images, 1 + 0.9 * s)
    if name == "contrast":
        return _blend(luma(images).mean((2, 3), keepdim=True), images, 1 + 0.9 * s)
    if name == "brightness":
        return _blend(torch.zeros_like(images), images, 1 + 0.9 * s)
    raise ValueError(f"expected an operation among {', '.join((*COLOR, *THREE))}, got {name!r}")


def jitter_colors(images: Tensor, factors: Tensor) -> Tensor:
    """Scale brightness, contrast and saturation by factors ``(B, 3)``."""
    brightness, contrast, saturation = factors[:, :, None, None, None].unbind(1)
    images = (brightness * images).clamp(0, 1)
    images = _blend(luma(images).mean((2, 3), keepdim=True), images, contrast)
    return _blend(luma(images), images, saturation)


def luma(images: Tensor) -> Tensor:
    """The grey image, ``(B, 1, H, W)``; the mean of the channels unless there are three."""
    if images.shape[1] != 3:
        return images.mean(1, keepdim=True)
    return (images * images.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True)


def _blend(other: Tensor, images: Tensor, factor: Tensor) -> Tensor:
    """Interpolate from ``other`` at factor 0 to the image at 1, and extrapolate."""
    return (other + factor * (images - other)).clamp(0, 1)


def _blur(images: Tensor) -> Tensor:
    """A binomial 5 × 5 kernel, σ = 1, along columns and then along rows."""
    blurred = F.pad(images, (2, 2, 2, 2), mode="replicate")
    for axis in (2, 3):
        a, b, c, d, e = (blurred.narrow(axis, i, images.shape[axis]) for i in range(5))
        blurred = (a + e + 4 * (b + d) + 6 * c) / 16
    return blurred


def _equalize(images: Tensor) -> Tensor:
    """Equalize the histogram of each channel; a channel of one value stays as it is."""
    planes = (images * 255).round().long().flatten(2)  # (B, C, P)
    histogram = torch.zeros(*planes.shape[:2], 256, device=images.device)
    histogram.scatter_add_(2, planes, torch.ones_like(planes, dtype=torch.float32))
    curve = histogram.cumsum(2) - histogram  # number of darker pixels
    most = planes.shape[2] - histogram.gather(2, planes.amax(2, keepdim=True))  # number of pixels but the brightest
    spread = (curve / most.clamp_min(1)).clamp(0, 1).gather(2, planes).view_as(images)
    return torch.where(most[..., None] > 0, spread, images)
