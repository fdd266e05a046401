"""Squares of 2×2 pixels, one to a lane, in tiles of ACROSS squares side by side."""

import triton
import triton.language as tl

ACROSS = 32
_ACROSS = tl.constexpr(ACROSS)


@triton.jit
def square_at(tiles, BLOCK: tl.constexpr):
    """Row and column of the first pixel of every square of this program's tile; ``tiles`` lie side by side."""
    lane = tl.arange(0, BLOCK)
    y = 2 * (tl.program_id(0) // tiles * (BLOCK // _ACROSS) + lane // _ACROSS)
    x = 2 * (tl.program_id(0) % tiles * _ACROSS + lane % _ACROSS)
    return y, x
