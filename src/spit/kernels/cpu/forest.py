"""From chosen edges to numbered trees as compiled loops: the connected components Ê₊ of §2.2."""

import numpy as np
from numba import njit

from spit.kernels.cpu.threads import Array
from spit.kernels.rules import ROUND

F = np.float32


@njit(cache=True, nogil=True)
def components(chosen: Array) -> tuple[Array, int]:
    """Labels and count of the forest's trees, with roots numbered in order. Overwrites ``chosen``."""
    count = len(chosen)
    break_pairs(chosen)
    moved = True
    while moved:  # pointer jumping in place: a vertex only ever gets nearer to its root
        changes = 0
        for v in range(count):
            to = chosen[v]
            further = chosen[to]
            changes |= to ^ further
            chosen[v] = further
        moved = changes != 0
    labels = np.empty(count, np.int32)
    roots = 0
    for v in range(count):
        labels[v] = roots
        roots += chosen[v] == v
    for v in range(count):
        chosen[v] = labels[chosen[v]]
    return chosen, roots


@njit(cache=True, nogil=True)
def break_pairs(chosen: Array) -> None:
    """Make the smaller of two vertices that chose each other a root."""
    for v in range(len(chosen)):
        to = chosen[v]
        root = (v < to) & (chosen[to] == v)
        chosen[v] = v if root else to


@njit(cache=True, nogil=True)
def keep_heaviest(chosen: Array, weights: Array, bound: int) -> Array:
    """Cancel the lightest choices, so that as many trees are lost as one round may. Overwrites ``chosen``."""
    count = len(chosen)
    break_pairs(chosen)
    children = np.flatnonzero(chosen != np.arange(count))
    joined = min(count - bound, max(count // ROUND, 1))
    if joined < len(children):
        keys = ordered(-weights[children]) + children  # the heaviest first, the smaller number among equals
        limit = np.partition(keys, joined)[joined]
        for i in range(len(children)):
            v = children[i]
            chosen[v] = v if keys[i] >= limit else chosen[v]
    return chosen


@njit(cache=True, nogil=True)
def ordered(weights: Array) -> Array:
    """Floats as integers of the same order, in the upper half of 64 bits; −0 becomes 0."""
    out = np.empty(len(weights), np.int64)
    bits = (weights + F(0)).view(np.int32)
    for e in range(len(weights)):
        out[e] = np.int64(bits[e] if bits[e] >= 0 else bits[e] ^ 0x7FFFFFFF) << 32
    return out


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def find(root: Array, v: int) -> int:
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v
