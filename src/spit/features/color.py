"""Colour: the normalised pixels of a region at a fixed resolution (§2.3, App. B)."""

import math
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from spit import kernels
from spit.images import to_float

CONTRAST_MEAN = (0.485, 0.456, 0.406)  # μ of App. B, for R, G, B
CONTRAST_SHAPE = (0.539, 0.507, 0.404)  # λ of App. B
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def kumaraswamy(x: Tensor, mean: Tensor | float, shape: Tensor | float) -> Tensor:
    """Contrast by the reparametrised Kumaraswamy CDF (App. B).

        1 − (1 − x^λ)^b,   b = −ln 2 / ln(1 − μ^λ)

    It rises from 0 at 0 to 1 at 1 and takes the mean μ to ½.

    Args:
        x: values in [0, 1], of any floating dtype, which the answer keeps; what lies beyond counts as
            the nearer end.
        mean: μ in (0, 1), broadcast against x.
        shape: λ > 0, broadcast against x.

    Note:
        The slope is infinite at 0 and at 1 (λ < 1, b < 1), and an infinite slope times the 0 of a
        masked pixel is NaN. Exactly there the derivative is taken as 1, and beyond the ends it is 0;
        the values are untouched.
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
    rest = -torch.expm1(shape * x.log())  # 1 − x^λ without the cancellation near 1
    return 1 - rest**b


def contrast(images: Tensor) -> Tensor:
    """Kumaraswamy contrast of each channel, mapped to [−1, 1] by 2y − 1 (App. B).

    Shape:
        ``(B, C, H, W)`` in [0, 1] to ``(B, C, H, W)`` in [−1, 1].

    Note:
        The paper gives constants for R, G, B. Any other number of channels takes their mean.
    """
    channels = images.shape[1]
    mean, shape = _per_channel(CONTRAST_MEAN, channels), _per_channel(CONTRAST_SHAPE, channels)
    return 2 * kumaraswamy(images, mean, shape) - 1


def standardize(images: Tensor) -> Tensor:
    """(x − mean) / std with the constants of ImageNet, as timm's ViTs expect.

    Shape:
        ``(B, C, H, W)`` in [0, 1] to ``(B, C, H, W)``.

    Note:
        Any number of channels but 3 takes the mean of the three constants.
    """
    channels = images.shape[1]
    mean, std = _per_channel(IMAGENET_MEAN, channels), _per_channel(IMAGENET_STD, channels)
    return (images - mean.to(images)) / std.to(images)


def unchanged(images: Tensor) -> Tensor:
    """The image as it is, in [0, 1]."""
    return images


FILLS = ("zero", "mean", "image")
NORMALIZATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "contrast": contrast,
    "imagenet": standardize,
    "none": unchanged,
}


def color_features(
    images: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, resolution: int, normalization: str,
    fill: str = "zero"
) -> Tensor:
    """ξ^col: the box of each region at K×K, normalised; other regions and the outside at 0 (§2.3).

    With ``fill="mean"`` they are at the region's own mean instead: still nothing of them is seen, but a region's
    outline is no edge in its patch, which is what a patch embedding learnt on whole patches would take it for.
    With ``fill="image"`` nothing is masked: what surrounds the region in its box is seen as it is.

    Shape:
        images ``(B, C, H, W)`` uint8 or in [0, 1], labels ``(B, H, W)``, offsets ``(B + 1,)``, boxes
        ``(ΣN, 4)`` to ``(ΣN, C·K·K)``, channel by channel.
    """
    if images.dtype == torch.uint8:
        normalized = kernels.look_up(images, _table(normalization, images.shape[1], images.device))
    else:
        normalized = NORMALIZATIONS[normalization](images)
    if fill != "mean":
        masked = fill == "zero"
        return kernels.color_patches(normalized, labels, offsets, boxes, resolution, masked).flatten(1)
    everywhere = torch.ones_like(normalized[:, :1])
    patches = kernels.color_patches(torch.cat([normalized, everywhere], 1), labels, offsets, boxes, resolution)
    colors, own = patches[:, :-1], patches[:, -1:]  # how much of each sample is the region's
    mean = colors.sum((2, 3), keepdim=True) / own.sum((2, 3), keepdim=True).clamp_min(1e-6)
    return (colors + (1 - own) * mean).flatten(1)


def squares(boxes: Tensor, height: int, width: int) -> Tensor:
    """The square around each box, as long as its longer side and about its centre, inside the image if it fits.

    Shape:
        ``(ΣN, 4)`` int32, ``(y0, x0, y1, x1)`` with the ends exclusive, to the same.
    """
    start, end = boxes[:, :2], boxes[:, 2:]
    side = (end - start).amax(1, keepdim=True)
    last = torch.cat([height - side, width - side], 1)
    corner = (start - (side - (end - start)) // 2).minimum(last).clamp_min(0)
    return torch.cat([corner, corner + side], 1)


@lru_cache(maxsize=8)
def _table(normalization: str, channels: int, device: torch.device) -> Tensor:
    """The normalisation of each channel at the 256 values that uint8 has, ``(C, 256)`` float32."""
    values = torch.arange(256, dtype=torch.uint8).expand(1, channels, 1, 256)
    return NORMALIZATIONS[normalization](to_float(values))[0, :, 0].contiguous().to(device)


def _per_channel(constants: tuple[float, float, float], channels: int) -> Tensor:
    """``(C, 1, 1)`` in float64."""
    values = constants if channels == 3 else (sum(constants) / 3,) * channels
    return torch.tensor(values, dtype=torch.float64)[:, None, None]
