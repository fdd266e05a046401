"""The borders of a label map as arcs between junctions, on the corners of pixels, by compiled loops.

Corner (x, y) is the upper left one of pixel (y, x). A piece is a 4-connected part of a region. A side of a pixel is
part of a border where the two pixels at it belong to different pieces. A junction is a corner where three or four
borders meet, or a corner of the map. An arc follows a border from junction to junction, or all around a piece if there
is no junction. It has a vertex at each of its ends and wherever it turns.
"""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled

EAST, SOUTH, WEST, NORTH, JUNCTION, VERTEX = 1, 2, 4, 8, 16, 32  # of a corner: where a border leaves it, and what it is
SIDES = 15


@compiled
def connected_pieces(numbers: Array) -> Any:
    """Number the 4-connected pieces of regions by their first pixels, from 1; also say whose each of them is.

    Shape:
        numbers ``(H, W)`` int32 to pieces ``(H + 2, W + 2)`` int32, with a frame of zeros, and regions ``(K + 1,)``.
    """
    height, width = numbers.shape
    pieces = np.zeros((height + 2, width + 2), np.int32)
    parents = np.zeros(height * width + 1, np.int32)
    count = 0
    for y in range(height):
        for x in range(width):
            v = numbers[y, x]
            if v == 0:
                continue
            up = pieces[y, x + 1] if y > 0 and numbers[y - 1, x] == v else 0
            left = pieces[y + 1, x] if x > 0 and numbers[y, x - 1] == v else 0
            piece = left if left > 0 else up
            if piece == 0:
                count += 1
                parents[count] = piece = count
            elif up > 0 and up != piece:
                while parents[up] != up:
                    parents[up] = parents[parents[up]]
                    up = parents[up]
                while parents[left] != left:
                    parents[left] = parents[parents[left]]
                    left = parents[left]
                parents[max(up, left)] = min(up, left)
            pieces[y + 1, x + 1] = piece
    roots = 0
    for piece in range(1, count + 1):  # a parent is smaller than its child
        if parents[piece] == piece:
            roots += 1
            parents[piece] = roots
        else:
            parents[piece] = parents[parents[piece]]
    regions = np.zeros(roots + 1, np.int32)
    for y in range(height):
        for x in range(width):
            piece = parents[pieces[y + 1, x + 1]]
            pieces[y + 1, x + 1] = piece
            regions[piece] = numbers[y, x]
    return pieces, regions


@compiled
def mark_corners(pieces: Array) -> Any:
    """What each corner is, ``(H + 1, W + 1)`` uint8; the borders at junctions; the turns elsewhere."""
    height, width = pieces.shape[0] - 2, pieces.shape[1] - 2
    marks = np.zeros((height + 1, width + 1), np.uint8)
    ends = turns = 0
    for y in range(height + 1):
        for x in range(width + 1):
            nw, ne, sw, se = pieces[y, x], pieces[y, x + 1], pieces[y + 1, x], pieces[y + 1, x + 1]
            if nw == ne and sw == se and nw == sw:
                continue
            mark = (ne != se) * EAST | (sw != se) * SOUTH | (nw != sw) * WEST | (nw != ne) * NORTH
            degree = (ne != se) + (sw != se) + (nw != sw) + (nw != ne)
            if degree > 2 or ((y == 0 or y == height) and (x == 0 or x == width)):
                mark |= JUNCTION | VERTEX
                ends += degree
            elif mark not in (EAST | WEST, SOUTH | NORTH):
                mark |= VERTEX
                turns += 1
            marks[y, x] = mark
    return marks, ends, turns


@compiled
def trace_arcs(pieces: Array, marks: Array, ends: int, turns: int) -> Any:
    """Follow every border once. Clears the sides of ``marks``, not what the corners are.

    Returns:
        The vertices of all arcs as (x, y), ``(V, 2)`` int32, an arc around a piece with its first vertex once more at
        its end; where each arc begins, ``(A + 1,)``; the pieces on its right and left, ``(A, 2)``; its first and last
        direction, ``(A, 2)``, clockwise from 0, the east.
    """
    points = np.empty((ends + turns + turns // 4, 2), np.int32)
    most = ends // 2 + turns // 4
    offsets, sides, ways = np.zeros(most + 1, np.int64), np.empty((most, 2), np.int32), np.empty((most, 2), np.int64)
    arcs = known = 0
    for around in (False, True):  # from junctions first: what is left goes around
        for row in range(marks.shape[0]):
            for column in range(marks.shape[1]):
                if marks[row, column] & SIDES == 0 or not (around or marks[row, column] & JUNCTION):
                    continue
                for way in range(4):
                    if not marks[row, column] >> way & 1:
                        continue
                    marks[row, column] &= ~np.uint8(1 << way)
                    y, x, d = row, column, way
                    sides[arcs, 0] = pieces[y + (d < 2), x + (d == 0 or d == 3)]
                    sides[arcs, 1] = pieces[y + (d == 1 or d == 2), x + (d < 2)]
                    points[known, 0], points[known, 1] = x, y
                    known += 1
                    while True:
                        x += (d == 0) - (d == 2)
                        y += (d == 1) - (d == 3)
                        mark = marks[y, x]
                        if mark & VERTEX:
                            points[known, 0], points[known, 1] = x, y
                            known += 1
                        back = np.uint8(1 << (d + 2) % 4)
                        if mark & JUNCTION or (y == row and x == column):
                            marks[y, x] = mark & ~back
                            break
                        marks[y, x] = mark & ~np.uint8(SIDES)
                        onward = mark & SIDES & ~back
                        d = (onward >> 1) - (onward >> 3)
                    ways[arcs, 0], ways[arcs, 1] = way, d
                    arcs += 1
                    offsets[arcs] = known
    return points[:known], offsets[: arcs + 1], sides[:arcs], ways[:arcs]
