"""From chosen edges to numbered trees as compiled loops: the connected components Ê₊ of §2.2."""

from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.compilation import compiled, inlined
from spit.kernels.rules import FAR, ROUND

F = np.float32
U = np.uint64
DIGIT = 2**11
LEAST = 2**31  # added to 32 bits with a sign, makes them 0 or more


@compiled
def components(chosen: Array) -> tuple[Array, int]:
    """Labels and count of the forest's trees, with roots numbered in order. Overwrites ``chosen``."""
    count = len(chosen)
    labels = np.empty(count, np.int32)  # of roots; made here, so that the compiler knows that it overlaps nothing
    roots = 0
    for v in range(count):
        root = _break_pair(chosen, v)
        labels[v] = roots
        roots += root
    shorten(chosen)
    for v in range(count):
        chosen[v] = labels[U(chosen[v])]
    return chosen, roots


@inlined
def shorten(parents: Array) -> None:
    """Point each vertex to its root. Pointer jumping in place: a vertex only ever gets nearer to its root."""
    moving, left = np.empty(len(parents) + 1, np.int32), 0  # vertices that may be further than a step from their root
    for v in range(len(parents)):
        to = parents[v]
        parents[v] = parents[U(to)]
        moving[U(left)] = v
        left += to != parents[v]
    while left > 0:
        last, left = left, 0
        for i in range(last):
            v = moving[i]
            to = parents[U(v)]
            further = parents[U(to)]
            parents[U(v)] = further
            moving[U(left)] = v
            left += to != further


@inlined
def follow(parents: Array, numbers: Array) -> Array:
    """The number of the root of each vertex, whose parents lead there; a root is its own parent."""
    here, further = parents.copy(), np.empty_like(parents)
    moved: Any = 1
    while moved > 0:  # faster than shorten for a few thousand
        for v in range(len(here)):
            further[v] = here[U(here[v])]
        moved = 0
        for v in range(len(here)):
            moved += np.int32(here[v] != further[v])
        here, further = further, here
    for v in range(len(here)):
        further[v] = numbers[U(here[v])]
    return further


@inlined
def _break_pair(chosen: Array, v: int) -> Any:
    """Whether v is a root, as the smaller of two vertices that chose each other is from now on."""
    to = chosen[v]
    root = (v == to) | ((v < to) & (chosen[U(to)] == v))
    chosen[v] = v if root else to
    return root


def keep_heaviest(chosen: Array, weights: Array, bound: int) -> Array:
    """Cancel the lightest choices, so that as many trees are lost as one round may. Overwrites ``chosen``."""
    count = len(chosen)
    joined = min(count - bound, max(count // ROUND, count - FAR * bound, 1))
    _keep_heaviest(chosen, weights, joined, np.empty(count, np.int32), np.empty(count, np.float32),
                   np.empty(DIGIT, np.int64))
    return chosen


@compiled
def _keep_heaviest(chosen: Array, weights: Array, joined: int, children: Array, lightness: Array, table: Array) -> None:
    k = 0
    for v in range(len(chosen)):
        children[k] = v
        lightness[k] = F(0) - weights[v]  # never −0
        k += not _break_pair(chosen, v)
    if joined < k:
        keys = lightness[:k].view(np.int32)
        for i in range(k):
            keys[i] = keys[i] if keys[i] >= 0 else keys[i] ^ np.int32(0x7FFFFFFF)  # in the order of the floats
        last, equal = smallest(keys, joined, table)
        for i in range(k):
            v = children[i]
            kept = (keys[i] < last) | (keys[i] == last) & (equal > 0)  # among equals the smaller numbers
            equal -= keys[i] == last
            chosen[v] = chosen[v] if kept else v


@inlined
def smallest(keys: Array, count: int, table: Array) -> tuple[int, int]:
    """The largest of the ``count`` smallest keys, and how many of these have its value."""
    rest, left, value = keys, len(keys), 0
    for shift in (22, 11, 0):  # digit after digit, from the high end
        for i in range(DIGIT):
            table[i] = 0
        for i in range(left):
            table[U((np.int64(rest[i]) + LEAST) >> shift) % U(DIGIT)] += 1
        digit = 0
        while table[digit] < count:
            count -= table[digit]
            digit += 1
        value = value * DIGIT + digit
        same, last, left = np.empty(table[digit] + 1, np.int32), left, 0
        for i in range(last):
            same[left] = rest[i]
            left += (np.int64(rest[i]) + LEAST) >> shift == value
            left = min(left, table[digit])
        rest = same
    return value - LEAST, count


@inlined
def ordered(weight: float) -> Any:
    """A float as an integer of the same order, in the upper half of 64 bits; −0 becomes 0."""
    bits = F(weight + F(0)).view(np.int32)
    return np.int64(bits if bits >= 0 else bits ^ np.int32(0x7FFFFFFF)) << 32


def merge_below(edges: Array, means: Array, threshold: float) -> Array:
    """The smallest region that each is joined to by edges shorter than the threshold."""
    near = F(min(threshold * threshold, float(np.finfo(F).max)))
    distance = np.zeros(len(edges), np.float32)
    for gap in (means[edges[:, 0]] - means[edges[:, 1]]).T:
        distance = distance + gap * gap
    return connect(edges[distance < near], np.arange(len(means), dtype=np.int32))


@compiled
def connect(pairs: Array, roots: Array) -> Array:
    """The smallest node that edges ``(E, 2)`` lead to from each node. ``roots`` has 0 to V − 1 and is overwritten."""
    for edge in range(len(pairs)):
        u, v = pairs[edge, 0], pairs[edge, 1]
        while roots[u] != u:  # to the root, halving the way
            roots[u] = roots[roots[u]]
            u = roots[u]
        while roots[v] != v:
            roots[v] = roots[roots[v]]
            v = roots[v]
        roots[max(u, v)] = min(u, v)
    for node in range(len(roots)):  # a root is smaller than its nodes, so it comes first
        roots[node] = roots[roots[node]]
    return roots
