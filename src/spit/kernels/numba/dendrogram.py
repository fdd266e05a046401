"""What must be known of every region of a tree, from the pixels up; by compiled loops.

The merges of a tree in the order of their heights, of equal ones by their names, form a dendrogram: each joins two
regions. ``order`` has the names of regions that merge into another, in this order.
"""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined

F = np.float32
LARGE = 1e38  # ∞ is where nothing merges


@inlined
def _root(roots: Array, v: int) -> Any:
    while roots[v] != v:  # halving the way
        roots[v] = roots[roots[v]]
        v = roots[v]
    return v


@compiled
def rank_merges(parents: Array, order: Array, least: int) -> tuple[Array, int]:
    """Number the merges of two regions of at least ``least`` pixels from the lowest; others have the number of the
    highest of these below them, or −1.

    Shape:
        parents ``(P,)`` to ranks ``(P,)`` int32, −1 where nothing merges, and how many have a number of their own.
    """
    roots, sizes = np.arange(len(parents)).astype(np.int32), np.ones(len(parents), np.int32)
    ranks, highest = np.full(len(parents), -1, np.int32), np.full(len(parents), -1, np.int32)
    count = 0
    for i in range(len(order)):
        one, other = order[i], _root(roots, parents[order[i]])  # a name that is not gone is its region's root
        rank = max(highest[one], highest[other])
        if min(sizes[one], sizes[other]) >= least:
            rank = np.int32(count)
            count += 1
        ranks[one] = highest[other] = rank
        sizes[other] += sizes[one]
        roots[one] = other
    return ranks, count


@compiled
def raise_merges(parents: Array, heights: Array, order: Array, kept: Array, times: float) -> Array:
    """The heights, ``times`` as high for merges of regions with a pixel in ``kept``, and above those below them.

    Shape:
        parents and heights ``(P,)``, kept ``(P,)`` bool to ``(P,)`` float32.
    """
    roots, touched = np.arange(len(parents)).astype(np.int32), kept.copy()
    raised = heights.copy()
    bits, tops = raised.view(np.int32), np.zeros(len(parents), np.int32)  # floats of 0 and more are ordered as these
    for i in range(len(order)):
        one, other = order[i], _root(roots, parents[order[i]])
        touched[other] |= touched[one]
        if touched[other]:
            raised[one] = max(heights[one], F(min(heights[one] * times, LARGE)))
            bits[one] = max(bits[one], max(tops[one], tops[other]) + 1)
        tops[other] = bits[one]
        roots[one] = other
    return raised
