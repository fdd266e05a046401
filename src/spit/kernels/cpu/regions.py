"""Sizes and boxes of regions as compiled loops."""

import numpy as np
import torch
from numba import njit
from torch import Tensor

from spit.kernels.cpu.threads import Array, for_each_image


def region_sizes(labels: Tensor, offsets: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.region_sizes`."""
    sizes = torch.zeros(int(offsets[-1]), dtype=torch.int64)
    maps, starts, out = labels.contiguous().numpy(), offsets.tolist(), sizes.numpy()
    for_each_image(lambda b: _sizes(maps[b], out[starts[b] : starts[b + 1]]), len(labels))
    return sizes


def region_boxes(labels: Tensor, offsets: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.region_boxes`."""
    boxes = torch.zeros(int(offsets[-1]), 4, dtype=torch.int32)
    maps, starts, out = labels.contiguous().numpy(), offsets.tolist(), boxes.numpy()
    for_each_image(lambda b: _boxes(maps[b], out[starts[b] : starts[b + 1]]), len(labels))
    return boxes


@njit(cache=True, nogil=True)
def _sizes(labels: Array, out: Array) -> None:
    for y in range(labels.shape[0]):
        for x in range(labels.shape[1]):
            out[labels[y, x]] += 1


@njit(cache=True, nogil=True)
def _boxes(labels: Array, out: Array) -> None:
    height, width = labels.shape
    low = np.full((len(out), 2), height + width, np.int32)
    for y in range(height):
        for x in range(width):
            v = labels[y, x]
            low[v, 0] = min(low[v, 0], y)
            low[v, 1] = min(low[v, 1], x)
            out[v, 2] = max(out[v, 2], y + 1)
            out[v, 3] = max(out[v, 3], x + 1)
    for v in range(len(out)):
        if out[v, 2] > 0:
            out[v, 0] = low[v, 0]
            out[v, 1] = low[v, 1]
