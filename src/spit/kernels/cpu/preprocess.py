"""Contrast and diffusion (App. B) by compiled loops; integers throughout."""

import torch
from torch import Tensor

from spit.kernels.cpu.threads import for_each_image
from spit.kernels.numba import preprocess


def look_up(images: Tensor, table: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.look_up`."""
    out = torch.empty(images.shape, dtype=table.dtype)
    for_each_image(preprocess.look_up, images, table.numpy(), out)
    return out


def diffuse(features: Tensor, flux: Tensor, steps: int) -> Tensor:
    """See :func:`spit.kernels.reference.diffuse`."""
    out = torch.empty(features.shape, dtype=torch.int16)
    for_each_image(preprocess.diffuse, features, flux.numpy(), steps, out)
    return out


def saturate(features: Tensor, push: int) -> Tensor:
    """See :func:`spit.kernels.reference.saturate`."""
    out = torch.empty(features.shape, dtype=torch.int16)
    for_each_image(preprocess.saturate, features, push, out)
    return out
