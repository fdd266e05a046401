"""Maps against masks: the pointing game (Zhang et al., 2018), and the share of a map that lies outside the object."""

import torch
from torch import Tensor


def points_at(maps: Tensor, masks: Tensor) -> Tensor:
    """How much of the brightest region lies on the object, ``(B,)`` float64: 1 for a hit, 0 for a miss.

    The brightest pixels of a map over tokens are those of a whole token, so there is no tolerance of 15 pixels as in
    the original, which points at one.

    Shape:
        maps ``(B, H, W)``, masks ``(B, H, W)`` bool.
    """
    flat, inside = maps.flatten(1), masks.flatten(1)
    brightest = flat == flat.amax(1, keepdim=True)
    return (brightest & inside).sum(1).double() / brightest.sum(1)


def share_outside(maps: Tensor, masks: Tensor) -> Tensor:
    """The share of a map's positive values on pixels outside the object, ``(B,)`` float64.

    A map without positive values has the share of the pixels, as one that says nothing.
    """
    values = maps.flatten(1).double().clamp(min=0)
    values = torch.where(values.sum(1, keepdim=True) > 0, values, torch.ones_like(values))
    return (values * ~masks.flatten(1)).sum(1) / values.sum(1)
