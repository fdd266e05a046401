"""How Triton kernels are launched here: exact arithmetic, and grids over images."""

from typing import Any

import triton

BLOCK = 512

EXACT: dict[str, Any] = {"enable_fp_fusion": False}
"""No fused multiply-add: float32 results are those of the reference, bit for bit."""


def blocks(length: int, block: int = BLOCK) -> int:
    """Programs that cover ``length`` elements."""
    return int(triton.cdiv(length, block))


