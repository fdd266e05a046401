"""Superpixels of one image at every count, nested in each other; see :func:`spit.hierarchy`."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spit.kernels import Array, numba
from spit.kernels.rules import tree_weights
from spit.wording import plural


@dataclass(frozen=True, eq=False)
class Tree:
    """The merges of an image's regions, from pixels to one region for each connected piece of the mask.

    Attributes:
        parents: the pixel after which the region is named that the region named after a pixel merged into.
        heights: the cost of that merge, the growth of the squared error in squared 8-bit steps, or just above the
            heights below it if that is larger; ∞ where there was none.
        mask: pixels that belong to regions.

    Shape:
        parents ``(P,)`` int32, heights ``(P,)`` float32, mask ``(H, W)`` bool.
    """

    parents: Array
    heights: Array
    mask: Array

    @staticmethod
    def of(planes: Array, compactness: float, mask: Array | None) -> "Tree":
        """The tree of an image, ``(C, H, W)`` uint8, in a mask ``(H, W)`` bool."""
        weights = np.array(tree_weights(len(planes), compactness))
        parents, heights = numba.grid_tree(numba.tree_colors(planes[None])[0], weights, mask)
        return Tree(parents, heights, np.ones(planes.shape[1:], np.bool_) if mask is None else mask)

    @cached_property
    def most(self) -> int:
        """The number of pixels."""
        return int(self.mask.sum())

    @cached_property
    def fewest(self) -> int:
        """The number of connected pieces of the mask."""
        return int(np.isinf(self.heights).sum()) - self.mask.size + self.most  # a pixel outside is a root

    def at(self, n: int) -> Array:
        """The partition into ``n`` regions, or as near as the tree has: labels from 1, and 0 outside the mask.

        Shape:
            ``(H, W)`` int32, numbered by the first pixels.
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"expected n, the number of superpixels, as a whole number of 1 or more, got {n!r}")
        count = min(max(int(n), self.fewest), self.most) + self.mask.size - self.most
        regions: Array = numba.cut_tree(self.parents, self.heights, count).reshape(self.mask.shape)
        if self.most == self.mask.size:
            regions += 1
            return regions
        labels = np.zeros(self.mask.shape, np.int32)
        labels[self.mask] = np.unique(regions[self.mask], return_inverse=True)[1].reshape(-1) + 1
        return labels

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

    def __repr__(self) -> str:
        height, width = self.mask.shape
        return f"Tree({self.fewest} to {plural(self.most, 'region')} of an image of {height}×{width})"
