"""Superpixels of one image at every count, nested in each other; see :func:`spit.hierarchy`."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spit.kernels import Array, numba
from spit.kernels.numba.dendrogram import raise_merges, rank_merges
from spit.kernels.rules import COLOR_STEP, finer_count
from spit.wording import plural

MOST_TIMES = 1e6
MOST_RATIO = 10_000  # of distances between pixels: costs stay below the largest float32


@dataclass(frozen=True, eq=False)
class Tree:
    """The merges of an image's regions, from pixels to one region for each connected piece of the mask.

    Attributes:
        parents: the pixel after which the region is named that the region named after a pixel merged into.
        heights: the cost of that merge, the growth of the squared error in squared 8-bit steps, as of three bands,
            times min(|u|, |v|)^⅛, or just above the heights below it if that is larger; ∞ where there was none.
        mask: pixels that belong to regions.
        planes: the image as the tree compares it.
        weights: factors of the squared differences of the planes, then of the positions along each axis.

    Shape:
        parents ``(P,)`` int32, heights ``(P,)`` float32, mask ``(H, W)`` or ``(D, H, W)`` bool, planes ``(C, *shape)``
        int16, weights ``(C + 2,)`` or ``(C + 3,)`` float64.
    """

    parents: Array
    heights: Array
    mask: Array
    planes: Array
    weights: Array

    @staticmethod
    def of(planes: Array, weights: Array, mask: Array | None) -> "Tree":
        """The tree of an image."""
        parents, heights = numba.grid_tree(planes, weights, mask)
        return Tree(parents, heights, np.ones(planes.shape[1:], np.bool_) if mask is None else mask, planes, weights)

    @cached_property
    def most(self) -> int:
        """The number of pixels."""
        return int(self.mask.sum())

    @cached_property
    def fewest(self) -> int:
        """The number of connected pieces of the mask."""
        return int(np.isinf(self.heights).sum()) - self.mask.size + self.most  # a pixel outside is a root

    @cached_property
    def _order(self) -> Array:
        """The merges from the lowest; of equally high ones, those of smaller names first."""
        keys = self.heights.view(np.int32).astype(np.int64) << 32 | np.arange(len(self.heights))
        keys.sort()  # eight times as fast as argsort
        return (keys[: self.most - self.fewest] & 0xFFFFFFFF).astype(np.int32)

    def at(self, n: int, min_size: int = 1) -> Array:
        """The partition into ``n`` regions, or as near as the tree has: labels from 1, and 0 outside the mask.

        Args:
            n: number of regions.
            min_size: pixels of the smallest region; only pieces of the mask that are smaller stay whole. The n - 1
                highest merges of two regions that large are undone. Regions that are smaller then join the cheapest of
                their neighbours, so that these partitions are not quite nested.

        Shape:
            ``(H, W)`` or ``(D, H, W)`` int32, numbered by the first pixels.
        """
        _check_counts(n, min_size)
        outside = self.mask.size - self.most
        if min_size == 1:
            return self._labels(self.heights, min(max(int(n), self.fewest), self.most) + outside)
        ranks, count = rank_merges(self.parents, self._order, int(min_size))
        undone = ranks >= max(count - max(int(n) - self.fewest, 0), 0)
        heights = np.where(undone, np.float32(np.inf), self.heights)
        labels = self._labels(heights, self.fewest + int(undone.sum()) + outside)
        return absorbed(labels, self.planes, self.weights, int(min_size))

    def refined(self, colors: Array, n: int, sweeps: int, min_size: int = 1) -> Array:
        """The partition into ``n`` regions after sweeps of boundary moves, see :func:`spit.kernels.reference.recut`.

        Shape:
            colors ``(C, H, W)`` of integers; labels as of :meth:`at`.
        """
        _check_counts(n, min_size)
        labels = self.at(finer_count(n, sweeps), min_size)
        if sweeps == 0:
            return labels
        masked = self.most < self.mask.size
        return numba.recut(labels - np.int32(1), self.planes, self.weights, colors, n, sweeps, min_size,
                           masked) + np.int32(1)

    def _labels(self, heights: Array, count: int) -> Array:
        regions: Array = numba.cut_tree(self.parents, heights, count).reshape(self.mask.shape)
        if self.most == self.mask.size:
            regions += 1
            return regions
        inside = np.zeros(count, np.int32)
        inside[regions[self.mask]] = 1
        return np.where(self.mask, inside.cumsum(dtype=np.int32)[regions], np.int32(0))

    def cut(self, height: float) -> Array:
        """The partition after all merges up to a height; labels as of :meth:`at`."""
        if not height >= 0:
            raise ValueError(f"expected a height of at least 0, got {height}")
        return self.at(self.most - int(((self.heights <= height) & np.isfinite(self.heights)).sum()))

    def between(self, fine: int, coarse: int) -> Array:
        """The region of ``at(coarse)`` in which each region of ``at(fine)`` lies, by its label; 0 for the label 0.

        Shape:
            ``(V + 1,)`` int32, so that ``between(fine, coarse)[at(fine)]`` is ``at(coarse)``.
        """
        if coarse > fine:
            raise ValueError(f"expected a coarse partition of at most {plural(fine, 'region')}, got {coarse}")
        below, above = self.at(fine), self.at(coarse)
        parents = np.zeros(int(below.max()) + 1, np.int32)
        parents[below] = above
        return parents

    def keep(self, mask: npt.ArrayLike, times: float = 16.0) -> "Tree":
        """The tree with more regions where ``mask`` is True, and fewer elsewhere at the same count.

        Args:
            mask: bool, of the image's shape; an object, or single pixels that were clicked.
            times: how many times as high the merges become whose region has a pixel of the mask. 16 is as if colours
                there were four times as different.
        """
        kept = np.asarray(mask)
        if kept.shape != self.mask.shape or kept.dtype != bool:
            raise ValueError(f"expected a mask of bool and shape {self.mask.shape}, got {kept.dtype} of shape "
                             f"{kept.shape}" + ("; give mask > 0" if kept.shape == self.mask.shape else ""))
        if not 1 <= times <= MOST_TIMES:
            raise ValueError(f"expected times from 1 to {MOST_TIMES:,.0f}, got {times}")
        heights = raise_merges(self.parents, self.heights, self._order, (kept & self.mask).ravel(), float(times))
        return replace(self, heights=heights)

    def __repr__(self) -> str:
        return (f"Tree({self.fewest} to {plural(self.most, 'region')} of an image of "
                f"{'×'.join(map(str, self.mask.shape))})")


def _check_counts(n: int, min_size: int) -> None:
    for name, number in (("n, the number of superpixels,", n), ("min_size", min_size)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise ValueError(f"expected {name} as a whole number of 1 or more, got {number!r}")


def absorbed(labels: Array, planes: Array, weights: Array, least: int) -> Array:
    """Let regions of fewer than ``least`` pixels join their cheapest neighbour of at least that many.

    In each round all regions join that have such a neighbour; the cost is that of the tree, of equal ones the smaller
    label counts. Regions without a neighbour stay.

    Shape:
        labels ``(*shape,)`` int32 from 1, 0 for no region, numbered by their first pixels, as the answer is; planes
        ``(C, *shape)``, weights ``(C + len(shape),)``.
    """
    names, count = labels.ravel(), int(labels.max()) + 1
    sizes = np.bincount(names, minlength=count)
    small = sizes < least
    small[0] = False
    edges = _edges(labels, small)
    if len(edges) == 0:
        return labels
    axes = np.ogrid[tuple(slice(side) for side in labels.shape)]
    sums = np.stack([np.bincount(names, np.broadcast_to(values, labels.shape).ravel(), count)
                     for values in (*planes, *axes)], 1)  # of integers, exact
    roots, sizes = np.arange(count), sizes.astype(np.float64)
    while len(edges) > 0:
        ready = edges[small[edges[:, 0]] != small[edges[:, 1]]]
        if len(ready) == 0:
            break
        u, v = np.where(small[ready[:, 0]], ready.T, ready.T[::-1])  # u joins v
        distances = np.zeros(len(u))
        for weight, total in zip(weights, sums.T, strict=True):  # in this order on every machine
            distances += weight * (total[u] / sizes[u] - total[v] / sizes[v]) ** 2
        costs = (sizes[u] * sizes[v] / (sizes[u] + sizes[v]) * distances).astype(np.float32)
        order = np.lexsort((v, costs, u))
        joins, first = np.unique(u[order], return_index=True)
        to = v[order][first]
        roots[joins], small[joins] = to, False
        np.add.at(sums, to, sums[joins])
        np.add.at(sizes, to, sizes[joins])
        edges = roots[edges]
        edges = edges[small[edges].any(1)]
    firsts = np.full(count, count)
    np.minimum.at(firsts, roots, np.arange(count))  # the label whose first pixel is the first of a joined region
    numbers = np.cumsum(firsts[roots] == np.arange(count), dtype=np.int32) - np.int32(1)
    joined: Array = numbers[firsts[roots]][labels]
    return joined


def _edges(labels: Array, small: Array) -> Array:
    """Pairs of neighbouring regions of which one is small at least, ``(E, 2)``."""
    keys = []
    for axis in range(labels.ndim):
        lines = labels.swapaxes(0, axis)
        one, other = lines[:-1], lines[1:]
        touch = (one != other) & (one > 0) & (other > 0)
        one, other = one[touch].astype(np.int64), other[touch].astype(np.int64)
        keys.append((np.minimum(one, other) * len(small) + np.maximum(one, other))[small[one] | small[other]])
    return np.stack(np.divmod(np.unique(np.concatenate(keys)), len(small)), 1)


def cost_weights(shape: tuple[int, ...], compactness: float, weights: npt.ArrayLike | None,
                 spacing: npt.ArrayLike | None) -> Array:
    """The weights of an image ``(C, *shape)``: three for all bands together, as grey counts as RGB, and λ² per axis."""
    bands = _factors("weights", "band", weights, shape[0])
    axes = _factors("spacing", "axis", spacing, len(shape) - 1)
    if bands.max() == 0:
        raise ValueError("expected a weight above 0, got 0 for all bands")
    if not axes.max() <= MOST_RATIO * axes.min():
        raise ValueError(f"expected spacing above 0, of at most {MOST_RATIO:,} times its smallest, got {spacing!r}")
    return np.concatenate([3 * (bands / bands.sum()) / COLOR_STEP**2, (compactness * axes / axes.min()) ** 2])


def _factors(name: str, what: str, given: npt.ArrayLike | None, count: int) -> Array:
    """Numbers of 0 or more, one for each; 1 where there are none."""
    factors = np.ones(count) if given is None else np.asarray(given, np.float64)
    if factors.shape != (count,) or not (factors >= 0).all() or not np.isfinite(factors).all():
        raise ValueError(f"expected {name} as {plural(count, 'number')} of 0 or more, one per {what}, got {given!r}")
    return factors
