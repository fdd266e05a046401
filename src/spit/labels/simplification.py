"""Fewer vertices of arcs, without gaps, overlaps or crossings.

Douglas and Peucker's rule says which vertices an arc can do without. Such a vertex goes only if the triangle that it
makes with its two neighbours contains no other vertex of any arc. The side that replaces the other two then crosses
nothing: what crossed it would have to end in the triangle, or cross one of the two. By induction, no two arcs ever
cross, islands stay on their side, and every ring stays simple, whatever the tolerance. A vertex that cannot go is tried
again after others have gone. An arc that ends where it begins keeps three different vertices, and of several arcs
between the same two junctions only one becomes straight.
"""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled
from spit.labels.borders import VERTEX


def simplify_arcs(points: Array, offsets: Array, marks: Array, tolerance: float) -> tuple[Array, Array]:
    """The vertices that are left, and where the arcs begin among them. Clears the vertices of ``marks`` that go."""
    first, last = points[offsets[:-1]].astype(np.int64), points[offsets[1:] - 1].astype(np.int64)
    ends = np.stack([place[:, 1] * marks.shape[1] + place[:, 0] for place in (first, last)], 1)
    ends.sort(1)
    groups = np.unique(ends[:, 0] * marks.size + ends[:, 1], return_inverse=True)[1]
    straight = np.zeros(len(offsets), bool)
    straight[groups[np.diff(offsets) == 2]] = True
    chosen = _needed(points, offsets, tolerance)
    left, lengths = _remove(points, offsets, chosen, groups, straight, marks)
    return points[left], np.concatenate([[0], np.cumsum(lengths)])


@compiled
def _needed(points: Array, offsets: Array, tolerance: float) -> Any:
    """The vertices that Douglas and Peucker keep, bool; a closed arc also keeps the one farthest from its end."""
    needed = np.zeros(len(points), np.bool_)
    stack = np.empty((len(points) + 1, 2), np.int64)
    for arc in range(len(offsets) - 1):
        first, last = offsets[arc], offsets[arc + 1] - 1
        needed[first] = needed[last] = True
        stack[0, 0], stack[0, 1] = first, last
        depth = 1
        while depth > 0:
            depth -= 1
            first, last = stack[depth, 0], stack[depth, 1]
            ax, ay = points[first, 0], points[first, 1]
            dx, dy = np.float64(points[last, 0] - ax), np.float64(points[last, 1] - ay)
            length, most, farthest = dx * dx + dy * dy, -1.0, first
            for i in range(first + 1, last):
                px, py = np.float64(points[i, 0] - ax), np.float64(points[i, 1] - ay)
                along = min(max((px * dx + py * dy) / length, 0.0), 1.0) if length > 0 else 0.0
                distance = (px - along * dx) ** 2 + (py - along * dy) ** 2
                if distance > most:
                    most, farthest = distance, i
            if most > tolerance * tolerance or (length == 0 and most > 0):
                needed[farthest] = True
                stack[depth, 0], stack[depth, 1] = first, farthest
                stack[depth + 1, 0], stack[depth + 1, 1] = farthest, last
                depth += 2
    return needed


@compiled
def _remove(points: Array, offsets: Array, needed: Array, groups: Array, straight: Array, marks: Array) -> Any:
    """Remove vertices in rounds, in each no two neighbours; return the vertices left and the lengths of arcs."""
    chain = np.arange(len(points))  # the vertices left of each arc, from where the arc began
    lengths = offsets[1:] - offsets[:-1]
    changed = True
    while changed:
        changed = False
        for arc in range(len(lengths)):
            first, before = offsets[arc], lengths[arc]
            closed = (points[first] == points[offsets[arc + 1] - 1]).all()
            left, kept, removed = before, 1, False
            for i in range(1, before):
                v = chain[first + i]
                removed = (not removed and i < before - 1 and not needed[v]
                           and left > (4 if closed else 2) and not (left == 3 and straight[groups[arc]])
                           and is_free(points[chain[first + kept - 1]], points[v], points[chain[first + i + 1]], marks))
                if removed:
                    left -= 1
                    marks[points[v, 1], points[v, 0]] &= ~np.uint8(VERTEX)
                    if left == 2:
                        straight[groups[arc]] = True
                else:
                    chain[first + kept] = v
                    kept += 1
            changed |= left < before
            lengths[arc] = left
    known = 0
    for arc in range(len(lengths)):
        for i in range(lengths[arc]):
            chain[known] = chain[offsets[arc] + i]
            known += 1
    return chain[:known], lengths


@compiled
def is_free(u: Array, v: Array, w: Array, marks: Array) -> Any:
    """Whether a triangle of vertices contains no other vertex, neither inside nor on its sides; exact."""
    for y in range(min(u[1], v[1], w[1]), max(u[1], v[1], w[1]) + 1):
        low, high = np.int64(marks.shape[1]), np.int64(-1)
        for a, b in ((u, v), (v, w), (w, u)):
            ax, ay, bx, by = np.int64(a[0]), np.int64(a[1]), np.int64(b[0]), np.int64(b[1])
            if ay > by:
                ax, ay, bx, by = bx, by, ax, ay
            if y < ay or y > by:
                continue
            if ay == by:
                low, high = min(low, ax, bx), max(high, ax, bx)
            else:
                run, rise = (y - ay) * (bx - ax), by - ay
                low, high = min(low, ax - (-run) // rise), max(high, ax + run // rise)
        for x in range(low, high + 1):
            if marks[y, x] & VERTEX and not ((x == u[0] and y == u[1]) or (x == v[0] and y == v[1])
                                             or (x == w[0] and y == w[1])):
                return False
    return True
