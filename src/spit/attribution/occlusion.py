"""Images without their most, or least, important pixels (App. D)."""

import torch
from torch import Tensor

from spit.images import to_float


def rank_pixels(maps: Tensor) -> Tensor:
    """The rank of each pixel, from 0, the most important.

    Pixels of equal value, such as those of one token, are in raster order, so a share of the pixels is exact for any
    size of tokens.

    Shape:
        maps ``(B, H, W)`` to ``(B, H, W)`` int64.

    Example:
        >>> import torch
        >>> from spit.attribution import rank_pixels
        >>> rank_pixels(torch.tensor([[[0.1, 0.5], [0.5, -1.0]]]))
        tensor([[[2, 0],
                 [1, 3]]])
    """
    flat = maps.flatten(1)
    order = flat.argsort(dim=1, descending=True, stable=True)
    places = torch.arange(flat.shape[1], device=maps.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places).view(maps.shape)


def occlude(images: Tensor, ranks: Tensor, share: float, keep: bool = False) -> Tensor:
    """``x ∖ x_{>q}``: the images without their most important pixels; with ``keep``, with only those.

    Removed pixels get the mean colour of their image.

    Args:
        ranks: from :func:`rank_pixels`.
        share: of the pixels to remove, or to keep, the most important first.

    Shape:
        images ``(B, C, H, W)`` uint8 or floats in [0, 1] and ranks ``(B, H, W)`` to float32 images in [0, 1].

    Example:
        >>> import torch
        >>> from spit.attribution import occlude
        >>> occlude(torch.tensor([[[[0.0, 1.0]]]]), torch.tensor([[[1, 0]]]), share=0.5)
        tensor([[[[0.0000, 0.5000]]]])
    """
    if not 0 <= share <= 1:
        raise ValueError(f"expected a share of the pixels from 0 to 1, got {share}")
    if ranks.shape != (len(images), *images.shape[2:]):
        raise ValueError(f"expected ranks of shape {(len(images), *images.shape[2:])}, one for each pixel, "
                         f"got {tuple(ranks.shape)}")
    first = ranks < round(share * ranks[0].numel())
    return paint_over(images, ~first if keep else first)


def paint_over(images: Tensor, removed: Tensor) -> Tensor:
    """The images with the mean colour of each in its removed pixels, ``(B, H, W)`` bool; float32 in [0, 1]."""
    pixels = to_float(images)
    return torch.where(removed[:, None], pixels.mean((2, 3), keepdim=True), pixels)
