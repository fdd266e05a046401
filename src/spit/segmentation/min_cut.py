"""The exact minimum of an energy of yes-or-no decisions on a graph: a minimum cut (Dinic 1970).

This is our own because scipy is an extra, and because its ``maximum_flow`` says nothing of the cut.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spit.kernels.numba.compilation import compiled
from spit.segmentation.graph import check_pairs

STEPS = 1024  # capacities are whole numbers of 1/1024, so that the answer has no rounding


def minimum_cut(gains: NDArray[np.float64], pairs: NDArray[np.int64],
                costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The y that minimises ``Σ_(u,v) costs · [y_u ≠ y_v] − Σ_v gains · y_v``; of several, the one with the fewest y.

    Args:
        gains: what is gained if a node is chosen; negative if it should not be.
        pairs: the two nodes of each edge.
        costs: of an edge whose ends differ, 0 or more.

    Shape:
        gains ``(V,)``, pairs ``(E, 2)``, costs ``(E,)`` to ``(V,)`` bool.
    """
    nodes, edges = len(gains), len(pairs)
    check_pairs(pairs, nodes)
    if costs.shape != (edges,) or not (np.isfinite(gains).all() and np.isfinite(costs).all() and (costs >= 0).all()):
        raise ValueError(f"expected finite gains, and a finite cost of 0 or more for each of {edges} edges, got gains "
                         f"{gains} and costs {costs}")
    source, sink = nodes, nodes + 1
    capacity, gain = (np.rint(values * STEPS).astype(np.int64) for values in (costs, gains))
    places = np.arange(nodes)
    # An arc and the one back, each a half of the list. A node has an arc from the source or to the sink.
    start = np.concatenate([pairs[:, 0], np.where(gain > 0, source, places)])
    end = np.concatenate([pairs[:, 1], np.where(gain > 0, places, sink)])
    room = np.concatenate([capacity, np.abs(gain), capacity, np.zeros(nodes, np.int64)])
    tails, heads = np.concatenate([start, end]), np.concatenate([end, start])
    order = np.argsort(tails, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    back = np.roll(place, -(edges + nodes))[order]
    first = np.searchsorted(tails[order], np.arange(nodes + 3))
    reached: NDArray[np.int64] = _flow(first, heads[order], back, room[order], source, sink)
    return reached[:nodes] >= 0


@compiled
def _flow(first: Any, heads: Any, back: Any, room: Any, source: int, sink: int) -> Any:
    """Fill ``room`` with the maximum flow; the distance from the source in what is left, -1 where nothing leads."""
    count = len(first) - 1
    distance = np.empty(count, np.int64)
    queue = np.empty(count, np.int64)
    path = np.empty(count, np.int64)  # arcs from the source to the present node
    following = np.empty(count, np.int64)  # each node's next arc to try
    while True:
        for node in range(count):
            distance[node] = -1
            following[node] = first[node]
        distance[source] = 0
        queue[0] = source
        done, known = 0, 1
        while done < known:
            node = queue[done]
            done += 1
            for arc in range(first[node], first[node + 1]):
                to = heads[arc]
                if room[arc] > 0 and distance[to] < 0:
                    distance[to] = distance[node] + 1
                    queue[known] = to
                    known += 1
        if distance[sink] < 0:
            return distance
        node, length = source, 0
        while True:
            if node == sink:
                least = room[path[0]]
                for step in range(1, length):
                    least = min(least, room[path[step]])
                full = length
                for step in range(length - 1, -1, -1):
                    room[path[step]] -= least
                    room[back[path[step]]] += least
                    if room[path[step]] == 0:
                        full = step
                length = full  # go on from before the first arc that is full
                node = heads[back[path[length]]]
                continue
            arc = following[node]
            if arc == first[node + 1]:
                if length == 0:
                    break
                distance[node] = count  # a dead end in this round
                length -= 1
                node = heads[back[path[length]]]
            elif room[arc] > 0 and distance[heads[arc]] == distance[node] + 1:
                path[length] = arc
                length += 1
                node = heads[arc]
            else:
                following[node] += 1
