"""How programs share an image: strips and squares of pixels.

One warp walks down a strip row by row. A lane holds COLUMNS neighbouring pixels of a row, so a strip is
``LANES · COLUMNS`` pixels wide. The row above stays in registers, and one shuffle brings a row's eastern or western
neighbours. Strips overlap by a halo on each side. Squares of 2×2 pixels, one to a lane, lie in tiles of ACROSS squares
side by side.
"""

from typing import NamedTuple

import triton
import triton.language as tl

LANES = 32
LARGE = 2**22
"""From this many numbers on there are enough strips to fill a GPU with wide ones."""
BUSY = 1536
"""Strips that keep a GPU busy: with fewer of them, they are cut shorter."""
ACROSS = 32
_ACROSS = tl.constexpr(ACROSS)


class Strips(NamedTuple):
    """How an image is cut: pixels of a lane, strips side by side, and rows that a strip walks."""

    columns: int
    abreast: int
    rows: int

    def grid(self, height: int, planes: int) -> tuple[int, int]:
        """Programs: all strips of a plane, and planes."""
        return self.abreast * int(triton.cdiv(height, self.rows)), planes


def cut(width: int, halo: int, numbers: int, rows: int) -> Strips:
    """The strips of an image, as wide as they are well filled; small batches get short and narrow ones.

    Args:
        halo: pixels on each side of a strip that its neighbours answer for; it walks as many rows above and below.
        numbers: pixels and channels of the batch.
        rows: rows of a strip in large batches.
    """
    counts = {columns: _count(width, halo, columns) for columns in ((8, 4, 2) if numbers >= LARGE else (2, 1))}
    columns = min(counts, key=lambda columns: columns * counts[columns])
    fair = numbers // (LANES * columns * BUSY)
    return Strips(columns, counts[columns], min(rows, max(2 ** fair.bit_length() // 2, 2 * halo, 4)))


def _count(width: int, halo: int, columns: int) -> int:
    """Strips to cover a row; the first and the last need no halo at the image's edge."""
    return max(int(triton.cdiv(width - 2 * halo, LANES * columns - 2 * halo)), 1)


@triton.jit
def strip_at(height, width, strips, HALO: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
             LANES: tl.constexpr):
    """Columns of this program's strip ``(LANES, COLUMNS)``, which of them are its own, and its first and last row."""
    strip = tl.program_id(0) % strips
    top = tl.program_id(0) // strips * ROWS
    first = strip * (LANES * COLUMNS - 2 * HALO)
    x = first + COLUMNS * tl.arange(0, LANES)[:, None] + tl.arange(0, COLUMNS)[None, :]
    left = tl.where(strip == 0, 0, first + HALO)
    right = tl.where(strip == strips - 1, width, first + LANES * COLUMNS - HALO)
    return x, (x >= left) & (x < right) & (x < width), top, tl.minimum(top + ROWS, height)


@triton.jit
def east(row, LANES: tl.constexpr, COLUMNS: tl.constexpr):
    """The pixel after each one; behind the last stands any."""
    if COLUMNS == 1:
        after = tl.minimum(tl.arange(0, LANES) + 1, LANES - 1)
        return tl.gather(row, after[:, None], 0)
    else:
        even, odd = tl.split(tl.reshape(row, (LANES, COLUMNS // 2, 2)))
        return tl.reshape(tl.join(odd, east(even, LANES, COLUMNS // 2)), (LANES, COLUMNS))


@triton.jit
def west(row, LANES: tl.constexpr, COLUMNS: tl.constexpr):
    """The pixel before each one; before the first stands any."""
    if COLUMNS == 1:
        before = tl.maximum(tl.arange(0, LANES) - 1, 0)
        return tl.gather(row, before[:, None], 0)
    else:
        even, odd = tl.split(tl.reshape(row, (LANES, COLUMNS // 2, 2)))
        return tl.reshape(tl.join(west(odd, LANES, COLUMNS // 2), even), (LANES, COLUMNS))


@triton.jit
def square_at(tiles, BLOCK: tl.constexpr):
    """Row and column of the first pixel of every square of this program's tile; ``tiles`` lie side by side."""
    lane = tl.arange(0, BLOCK)
    y = 2 * (tl.program_id(0) // tiles * (BLOCK // _ACROSS) + lane // _ACROSS)
    x = 2 * (tl.program_id(0) % tiles * _ACROSS + lane % _ACROSS)
    return y, x
