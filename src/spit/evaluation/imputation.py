"""Noisy linear imputation (Rong et al., ICML 2022): removed pixels follow from their neighbours."""

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.images import to_float

WEIGHTS = torch.tensor([[1.0, 2.0, 1.0], [2.0, 0.0, 2.0], [1.0, 2.0, 1.0]]) / 12  # 1/6 beside, 1/12 diagonally
NOISE = 0.01  # standard deviation that is added, so that a model cannot tell the holes by their smoothness
CLOSE = 1e-4  # residual to stop at, over the first one
ROUNDS, CHECKED = 600, 20  # conjugate gradients at most, and between two looks at the residual


def impute(images: Tensor, missing: Tensor, noise: Tensor | None = None) -> Tensor:
    """Give every missing pixel the weighted mean of its eight neighbours, missing ones among them.

    ``(D − W) u = W x`` on the missing pixels, with W the weights and D their sum, which is smaller at the border. The
    system is symmetric and positive definite if a pixel is known; conjugate gradients solve it for all images at once.

    Args:
        noise: standard normal numbers that are added to missing pixels, times 0.01 (default: none).

    Shape:
        images ``(B, C, H, W)`` uint8 or floats in [0, 1] and missing ``(B, H, W)`` bool to float32 images in [0, 1].
    """
    known = to_float(images)
    hole = missing[:, None].to(known.dtype)
    kernel = WEIGHTS.to(known)[None, None]

    def neighbours(values: Tensor) -> Tensor:
        return F.conv2d(values.flatten(0, 1)[:, None], kernel, padding=1).view_as(values)

    sums = neighbours(torch.ones_like(known[:1, :1]))
    start = known.mean((2, 3), keepdim=True) * hole  # the mean colour is nearer than black
    residual = (neighbours(known * (1 - hole) + start) - sums * start) * hole
    found, direction = start, residual / sums
    energy = (residual * direction).sum((2, 3), keepdim=True)
    first = energy.clamp(min=torch.finfo(energy.dtype).tiny)
    for step in range(ROUNDS):
        if step % CHECKED == 0 and bool((energy <= CLOSE**2 * first).all()):
            break
        image = (sums * direction - neighbours(direction)) * hole
        length = energy / (direction * image).sum((2, 3), keepdim=True).clamp(min=torch.finfo(energy.dtype).tiny)
        found, residual = found + length * direction, residual - length * image
        before, energy = energy, (residual * residual / sums).sum((2, 3), keepdim=True)
        direction = residual / sums + energy / before.clamp(min=torch.finfo(energy.dtype).tiny) * direction
    if noise is not None:
        found = found + NOISE * noise * hole
    return torch.where(missing[:, None], found, known).clamp(0, 1)
