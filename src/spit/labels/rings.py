"""Simple rings around the pieces of regions, from arcs."""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled


def join_arcs(points: Array, offsets: Array, sides: Array, ways: Array) -> tuple[Array, Array, Array, Array]:
    """Join arcs to closed rings that touch themselves nowhere, with their piece on the right.

    Half-arc 2a is arc a as it was traced, and 2a + 1 goes back along it. At a junction a ring turns towards its piece
    as far as it can, so that pieces that touch at a corner stay apart. Where a ring comes back to a junction it is cut
    in two: a hole may touch the outline, but a ring is simple.

    Returns:
        Vertices of all rings, ``(V, 2)``, each ring's first one once more at its end; where rings begin, ``(R + 1,)``;
        the piece of each, ``(R,)``; twice its area, ``(R,)``, negative for holes.
    """
    first, last = points[offsets[:-1]].astype(np.int64), points[offsets[1:] - 1].astype(np.int64)
    row = int(points[:, 0].max(initial=0)) + 1
    begin, end = first[:, 1] * row + first[:, 0], last[:, 1] * row + last[:, 0]
    starts = np.stack([begin, end], 1).ravel()
    leaving = starts * 4 + np.stack([ways[:, 0], (ways[:, 1] + 2) % 4], 1).ravel()
    order = np.argsort(leaving)
    ranked = leaving[order]
    arrivals, heading = np.stack([end, begin], 1).ravel(), np.stack([ways[:, 1], (ways[:, 0] + 2) % 4], 1).ravel()
    following = np.empty(len(leaving), np.int64)
    for turn in (3, 0, 1):  # left, straight, right: the last that is there holds
        wanted = arrivals * 4 + (heading + turn) % 4
        place = np.searchsorted(ranked, wanted) % max(len(ranked), 1)
        there = ranked[place] == wanted
        following[there] = order[place[there]]
    corners, places = np.unique(starts, return_inverse=True)
    pieces = sides.ravel()
    members, rings = _split(following, places, pieces, len(corners))
    vertices, begins, areas = _fill(points, offsets, members, rings)
    return vertices, begins, pieces[members[rings[:-1]]], areas


@compiled
def _split(following: Array, places: Array, pieces: Array, corners: int) -> Any:
    """The half-arcs of each simple ring, side by side, and where rings begin among them."""
    members, rings = np.empty(len(following), np.int64), np.zeros(len(following) + 1, np.int64)
    stack, at = np.empty(len(following), np.int64), np.full(corners, -1)
    done = pieces == 0  # the outside has no rings
    count = known = 0
    for half in range(len(following)):
        if done[half]:
            continue
        depth, h = 0, half
        while True:
            bottom = at[places[h]]
            if bottom >= 0:  # back at a corner
                for i in range(bottom, depth):
                    at[places[stack[i]]] = -1
                    members[known] = stack[i]
                    known += 1
                count += 1
                rings[count] = known
                depth = bottom
            if done[h]:
                break
            at[places[h]] = depth
            stack[depth] = h
            depth += 1
            done[h] = True
            h = following[h]
    return members[:known], rings[: count + 1]


@compiled
def _fill(points: Array, offsets: Array, members: Array, rings: Array) -> Any:
    """The vertices of rings, where they begin, and twice their areas."""
    total = len(rings) - 1
    for h in members:
        total += offsets[h // 2 + 1] - offsets[h // 2] - 1
    vertices, begins = np.empty((total, 2), points.dtype), np.zeros(len(rings), np.int64)
    areas = np.zeros(len(rings) - 1, np.int64)
    known = 0
    for ring in range(len(rings) - 1):
        for member in range(rings[ring], rings[ring + 1]):
            h = members[member]
            first, last = offsets[h // 2], offsets[h // 2 + 1] - 1
            for i in range(last - first):
                vertices[known] = points[last - i if h % 2 else first + i]
                known += 1
        vertices[known] = vertices[begins[ring]]
        known += 1
        begins[ring + 1] = known
        for i in range(begins[ring], known - 1):
            areas[ring] += (np.int64(vertices[i, 0]) * vertices[i + 1, 1]
                            - np.int64(vertices[i + 1, 0]) * vertices[i, 1])
    return vertices, begins, areas
