"""Boundary refinement on the CPU: ``reference.refine``, bit for bit."""

import torch
from torch import Tensor

from spit.kernels.cpu.regions import check_labels
from spit.kernels.cpu.threads import for_each_image
from spit.kernels.numba import refinement


def refine(labels: Tensor, offsets: Tensor, pixels: Tensor, sweeps: int) -> Tensor:
    """See :func:`spit.kernels.reference.refine`."""
    check_labels(labels, offsets)
    answer = torch.empty_like(labels, memory_format=torch.contiguous_format)
    for_each_image(refinement.refine, labels, offsets.diff(), pixels, sweeps, answer)
    return answer
