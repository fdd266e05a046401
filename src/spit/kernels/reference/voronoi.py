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
    return torch.stack([_cells(image_sites.long(), height, width) for image_sites in sites]).int()


def _cells(sites: Tensor, height: int, width: int) -> Tensor:
    y, x = torch.arange(height)[:, None], torch.arange(width)

    def distance(labels: Tensor) -> Tensor:
        return (y - sites[labels, 0]) ** 2 + (x - sites[labels, 1]) ** 2

    labels = torch.zeros(height, width, dtype=torch.int64)
    for n in range(1, len(sites)):
        candidate = torch.full_like(labels, n)
        labels = torch.where(distance(candidate) < distance(labels), candidate, labels)
    settled = torch.zeros_like(labels, dtype=torch.bool)
    settled[sites[:, 0], sites[:, 1]] = True
    while True:
        grown = settled.clone()
        for here, there in _NEIGHBORS:
            grown[here] |= settled[there] & (labels[here] == labels[there])
        if torch.equal(grown, settled):
            break
        settled = grown
    far = (height + width) ** 2
    while not settled.all():
        best = torch.full_like(labels, far)
        choice = labels.clone()
        for here, there in _NEIGHBORS:
            offer = labels[there]
            cost = torch.full_like(labels, far)
            candidate = choice.clone()
            candidate[here] = offer
            cost[here] = torch.where(settled[there], distance(candidate)[here], far)
            closer = (cost < best) | ((cost == best) & (candidate < choice) & (cost < far))
            best, choice = torch.where(closer, cost, best), torch.where(closer, candidate, choice)
        reached = ~settled & (best < far)
        labels, settled = torch.where(reached, choice, labels), settled | reached
    return labels


_ALL = slice(None)
_NEIGHBORS = (
    ((slice(1, None), _ALL), (slice(None, -1), _ALL)),  # north
    ((_ALL, slice(1, None)), (_ALL, slice(None, -1))),  # west
    ((_ALL, slice(None, -1)), (_ALL, slice(1, None))),  # east
    ((slice(None, -1), _ALL), (slice(1, None), _ALL)),  # south
)
