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
    break_pairs(chosen)
    labels = np.empty(count, np.int32)  # of roots
    moving = np.empty(count + 1, np.int32)  # vertices that may be further than a step from their root
    roots, left = 0, count
    for v in range(count):
        labels[v] = roots
        roots += chosen[v] == v
        moving[v] = v
    while left > 0:  # pointer jumping in place: a vertex only ever gets nearer to its root
        last, left = left, 0
        for i in range(last):
            v = moving[i]
            to = chosen[U(v)]
            further = chosen[U(to)]
            chosen[U(v)] = further
            moving[U(left)] = v
            left += to != further
    for v in range(count):
        chosen[v] = labels[U(chosen[v])]
    return chosen, roots


@inlined
def break_pairs(chosen: Array) -> None:
    """Make the smaller of two vertices that chose each other a root."""
    for v in range(len(chosen)):
        to = chosen[v]
        root = (v < to) & (chosen[U(to)] == v)
        chosen[v] = v if root else to


@compiled
def keep_heaviest(chosen: Array, weights: Array, bound: int) -> Array:
    """Cancel the lightest choices, so that as many trees are lost as one round may. Overwrites ``chosen``."""
    count = len(chosen)
    break_pairs(chosen)
    children = np.empty(count, np.int32)
    lightness = np.empty(count, np.float32)
    k = 0
    for v in range(count):
        children[k] = v
        lightness[k] = F(0) - weights[v]  # never −0
        k += chosen[v] != v
    joined = min(count - bound, max(count // ROUND, count - FAR * bound, 1))
    if joined < k:
        keys = lightness[:k].view(np.int32)
        for i in range(k):
            keys[i] = keys[i] if keys[i] >= 0 else keys[i] ^ np.int32(0x7FFFFFFF)  # in the order of the floats
        last, equal = smallest(keys, joined)
        for i in range(k):
            v = children[i]
            kept = (keys[i] < last) | (keys[i] == last) & (equal > 0)  # among equals the smaller numbers
            equal -= keys[i] == last
            chosen[v] = chosen[v] if kept else v
    return chosen


@inlined
def smallest(keys: Array, count: int) -> tuple[int, int]:
    """The largest of the ``count`` smallest keys, and how many of these have its value."""
    value = 0
    table = np.empty(DIGIT, np.int64)
    for shift in (22, 11, 0):  # digit after digit, from the high end
        table[:] = 0
        for i in range(len(keys)):
            head = (np.int64(keys[i]) + LEAST) >> shift
            table[head % DIGIT] += head // DIGIT == value
        digit = 0
        while table[digit] < count:
            count -= table[digit]
            digit += 1
        value = value * DIGIT + digit
    return value - LEAST, count


@inlined
def ordered(weight: float) -> Any:
    """A float as an integer of the same order, in the upper half of 64 bits; −0 becomes 0."""
    bits = F(weight + F(0)).view(np.int32)
    return np.int64(bits if bits >= 0 else bits ^ np.int32(0x7FFFFFFF)) << 32


@compiled
def merge_below(edges: Array, means: Array, threshold: float) -> Array:
    """The smallest region that each is joined to by edges shorter than the threshold."""
    near = F(threshold * threshold)
    root = np.arange(len(means)).astype(np.int32)
    for u, v in edges:
        distance = F(0)
        for c in range(means.shape[1]):
            gap = means[u, c] - means[v, c]
            distance = distance + gap * gap
        if distance < near:
            a, b = find(root, u), find(root, v)
            root[max(a, b)] = min(a, b)
    return root


@inlined
def find(root: Array, v: int) -> int:
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v
