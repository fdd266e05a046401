"""Voronoi cells: every pixel to its nearest site (§1.1, App. C)."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from spit.kernels.portable import pieces

FAR = 2**63 - 1


def nearest_sites(sites: Tensor, height: int, width: int) -> Tensor:
    """Label each pixel with its nearest site; ties go to the smaller number, and every cell is 4-connected.

    A thin cell can fall apart on the pixel grid. Pixels that are cut off from their site go, from the rim
    inwards, to the nearest of the sites whose cells touch them.

    Shape:
        sites ``(B, N, 2)`` int32, distinct pixels (y, x) within an image, to ``(B, H, W)`` int32.
    """
    labels = torch.stack([_nearest(image_sites.long(), height, width) for image_sites in sites])
    return settle(sites.long(), labels).int()


def _nearest(sites: Tensor, height: int, width: int) -> Tensor:
    y, x = torch.arange(height)[:, None], torch.arange(width)
    labels = torch.zeros(height, width, dtype=torch.int64)
    nearest = torch.full((height, width), (height + width) ** 2)
    for n, (row, column) in enumerate(sites.tolist()):
        distance = (y - row) ** 2 + (x - column) ** 2
        labels = torch.where(distance < nearest, n, labels)
        nearest = torch.minimum(nearest, distance)
    return labels


def settle(sites: Tensor, labels: Tensor) -> Tensor:
    """Give pixels that are cut off from their site to the nearest cell that touches them, layer by layer.

    Shape:
        sites ``(B, N, 2)`` and labels ``(B, H, W)`` of the nearest sites to labels ``(B, H, W)``, all int64.
    """
    count = sites.shape[1]
    piece = pieces(labels, labels)[0]
    homes = torch.stack([image[y, x] for image, (y, x) in zip(piece, sites.mT, strict=True)])  # (B, N)
    loose = piece != homes.gather(1, labels.flatten(1)).view(labels.shape)
    y, x = torch.arange(labels.shape[1])[:, None], torch.arange(labels.shape[2])
    while loose.any():
        cells = pad(labels.masked_fill(loose, -1), (1, 1, 1, 1), value=-1)  # −1 is nobody's cell
        nearest = torch.full_like(labels, FAR)
        for cell in (cells[:, :-2, 1:-1], cells[:, 1:-1, :-2], cells[:, 1:-1, 2:], cells[:, 2:, 1:-1]):
            site = cell.clamp_min(0).flatten(1)
            row, column = (places.gather(1, site).view(cell.shape) for places in sites.unbind(2))
            rank = ((y - row) ** 2 + (x - column) ** 2) * count + cell  # ties to the smallest number
            nearest = torch.where((cell >= 0) & (rank < nearest), rank, nearest)
        touched = loose & (nearest < FAR)
        labels = torch.where(touched, nearest % count, labels)
        loose = loose & ~touched
    return labels
