"""Voronoi cells: every pixel to its nearest site (§1.1, App. C)."""

import torch
from torch import Tensor


def nearest_sites(sites: Tensor, height: int, width: int) -> Tensor:
    """Label each pixel with its nearest site, ties to the smaller number, every cell 4-connected.

    A thin cell can fall apart on the pixel grid. What is cut off from its site goes, from the rim
    inwards, to the nearest of the sites whose cells touch it.

    Shape:
        sites ``(B, N, 2)`` int32, distinct pixels (y, x) within an image; answer ``(B, H, W)`` int32.
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
    """Give what is cut off from its site to the nearest cell that touches it, layer by layer.

    Shape:
        sites ``(B, N, 2)`` int64, labels ``(B, H, W)``; the answer alike.
    """
    batch, height, width = labels.shape
    image = torch.arange(batch, device=labels.device)[:, None]
    settled = torch.zeros_like(labels, dtype=torch.bool)
    settled[image, sites[..., 0], sites[..., 1]] = True
    while True:
        grown = settled.clone()
        for here, there in _NEIGHBORS:
            grown[here] |= settled[there] & (labels[here] == labels[there])
        if torch.equal(grown, settled):
            break
        settled = grown
    y = torch.arange(height, device=labels.device)[:, None]
    x = torch.arange(width, device=labels.device)
    far = (height + width) ** 2
    while not settled.all():
        best = torch.full(labels.shape, far, device=labels.device)
        choice = labels.clone()
        for here, there in _NEIGHBORS:
            offer = choice.clone()
            offer[here] = labels[there]
            place = sites[image[..., None], offer.long()]
            distance = (y - place[..., 0]) ** 2 + (x - place[..., 1]) ** 2
            cost = torch.full_like(best, far)
            cost[here] = torch.where(settled[there], distance[here], far)
            closer = (cost < best) | ((cost == best) & (offer < choice) & (cost < far))
            best, choice = torch.where(closer, cost, best), torch.where(closer, offer, choice)
        reached = ~settled & (best < far)
        labels, settled = torch.where(reached, choice, labels), settled | reached
    return labels


_ALL, _FIRST, _LAST = slice(None), slice(None, -1), slice(1, None)
_NEIGHBORS: tuple[tuple[tuple[slice, ...], tuple[slice, ...]], ...] = (
    ((_ALL, _LAST), (_ALL, _FIRST)),  # north
    ((_ALL, _ALL, _LAST), (_ALL, _ALL, _FIRST)),  # west
    ((_ALL, _ALL, _FIRST), (_ALL, _ALL, _LAST)),  # east
    ((_ALL, _FIRST), (_ALL, _LAST)),  # south
)
