"""Voronoi cells: every pixel to its nearest site (§1.1, App. C)."""

import torch
from torch import Tensor
from torch.nn.functional import pad

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
        sites ``(B, N, 2)`` and labels ``(B, H, W)`` of the nearest sites to labels ``(B, H, W)``.
    """
    wide = pad(labels, (1, 1, 1, 1), value=-1)  # a rim outside all cells, so that the image has no borders to check
    height, width = wide.shape[1:]
    cell, loose = wide.view(-1), pad(_stuck(sites, wide), (1, 1, 1, 1)).view(-1)
    known = 0
    while len(places := loose.nonzero()[:, 0]) > known:  # the stuck pixels, then what is connected to them
        known = len(places)
        near = _neighbors(places, width)
        loose[torch.where(cell[near] == cell[places, None], near, places[:, None])] = True
    while len(places) > 0:
        near = _neighbors(places, width)  # (L, 4)
        owner = cell[near].long()
        rows, x = places // width, places % width - 1
        image, y = rows // height, rows % height - 1
        site = sites[image[:, None], owner].long()
        distance = (y[:, None] - site[..., 0]) ** 2 + (x[:, None] - site[..., 1]) ** 2
        rank = distance * sites.shape[1] + owner  # the nearest, ties to the smallest number
        rank = rank.masked_fill(loose[near] | (owner < 0), FAR).amin(1)
        enclosed = rank == FAR
        cell[places] = torch.where(enclosed, cell[places], (rank % sites.shape[1]).to(cell.dtype))
        loose[places] = enclosed
        places = places[enclosed]
    return wide[:, 1:-1, 1:-1].contiguous()


def _stuck(sites: Tensor, wide: Tensor) -> Tensor:
    """Pixels with no neighbour in their cell that is nearer to the site by a row or a column.

    Cells are convex, so a pixel with a path to its site has such a neighbour, and in a piece that is cut
    off the pixel with the fewest rows and columns to the site has none. The pieces are grown from these
    few pixels, which is cheaper than a flood of all others.
    """
    labels = wide[:, 1:-1, 1:-1]
    own = labels.flatten(1).long()
    y, x = (torch.arange(side, device=sites.device, dtype=sites.dtype) for side in labels.shape[1:])
    dy = y[:, None] - sites[..., 0].gather(1, own).view(labels.shape)
    dx = x - sites[..., 1].gather(1, own).view(labels.shape)
    vertical = torch.where(dy > 0, wide[:, :-2, 1:-1], wide[:, 2:, 1:-1])
    horizontal = torch.where(dx > 0, wide[:, 1:-1, :-2], wide[:, 1:-1, 2:])
    return (dy != 0) & (dx != 0) & (vertical != labels) & (horizontal != labels)


def _neighbors(places: Tensor, stride: int) -> Tensor:
    return torch.stack([places - stride, places - 1, places + 1, places + stride], dim=1)
