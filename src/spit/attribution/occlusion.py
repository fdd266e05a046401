"""Images with the most, or the least, important pixels taken away (App. D)."""

import torch
from torch import Tensor

from spit.images import to_float


def rank_pixels(maps: Tensor) -> Tensor:
    """The place of each pixel from the most important, 0, to the least.

    Pixels of equal value, as those of one token are, stand in raster order: a share of the pixels is then
    exactly that share, whatever the tokens' sizes, and the last token is cut rather than its neighbours kept.

    Shape:
        maps ``(B, H, W)`` to ``(B, H, W)`` int64.
    """
    flat = maps.flatten(1)
    order = flat.argsort(dim=1, descending=True, stable=True)
    places = torch.arange(flat.shape[1], device=maps.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places).view(maps.shape)


def occlude(images: Tensor, ranks: Tensor, share: float, keep: bool = False) -> Tensor:
    """``x ∖ x_{>q}``: the images without their most important pixels; with ``keep``, with nothing else.

    What is taken away becomes the mean colour of its image.

    Args:
        ranks: of :func:`rank_pixels`.
        share: of the pixels, the most important ones, that are removed, or kept.

    Shape:
        images ``(B, C, H, W)`` uint8 or floats in [0, 1], ranks ``(B, H, W)``; the answer float32 in [0, 1].
    """
    if not 0 <= share <= 1:
        raise ValueError(f"expected a share of the pixels from 0 to 1, got {share}")
    if ranks.shape != (len(images), *images.shape[2:]):
        raise ValueError(f"expected ranks of shape {(len(images), *images.shape[2:])}, a place for each pixel, "
                         f"got {tuple(ranks.shape)}")
    pixels = to_float(images)
    first = ranks < round(share * ranks[0].numel())
    return torch.where((~first if keep else first)[:, None], pixels.mean((2, 3), keepdim=True), pixels)
