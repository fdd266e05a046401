"""Voronoi cells by nearest site, by compiled loops."""

import torch
from torch import Tensor

from spit.kernels.cpu.threads import for_each_image
from spit.kernels.numba import voronoi


def nearest_sites(sites: Tensor, height: int, width: int) -> Tensor:
    """See :func:`spit.kernels.reference.nearest_sites`."""
    labels = torch.empty(len(sites), height, width, dtype=torch.int32)
    for_each_image(voronoi.nearest, sites, labels)
    for_each_image(voronoi.settle, sites, labels)
    return labels
