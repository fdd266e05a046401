"""How Triton kernels are launched: exact arithmetic, and grids over images."""

from typing import Any

import triton

BLOCK = 512

EXACT: dict[str, Any] = {"enable_fp_fusion": False}
"""No fused multiply-add, so that float32 results equal the reference bit for bit."""


def blocks(length: int, block: int = BLOCK) -> int:
    """How many programs cover ``length`` elements."""
    return int(triton.cdiv(length, block))
