"""How Triton kernels are launched here: exact arithmetic, and grids over images."""

from typing import Any

import torch
import triton
from torch import Tensor

BLOCK = 1024

EXACT: dict[str, Any] = {"enable_fp_fusion": False}
"""No fused multiply-add: float32 results are those of the reference, bit for bit."""


def blocks(length: int, block: int = BLOCK) -> int:
    """Programs that cover ``length`` elements."""
    return int(triton.cdiv(length, block))


def empty(like: Tensor, *shape: int, dtype: torch.dtype) -> Tensor:
    """Uninitialised memory beside ``like``."""
    return torch.empty(shape, dtype=dtype, device=like.device)
