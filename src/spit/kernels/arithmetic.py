"""Exact float32 arithmetic in torch: the same bits on every device."""

from torch import Tensor


def exact_sqrt(x: Tensor) -> Tensor:
    """The float32 nearest to √x. torch's own float32 root is one unit off for 1 value in 160 on some CPUs."""
    return x.double().sqrt().float()


def running_sum(x: Tensor) -> Tensor:
    """Sum over the last dimension from left to right, so that rounding has one order."""
    total = x[..., 0]
    for c in range(1, x.shape[-1]):
        total = total + x[..., c]
    return total
