"""Superpixels by the rules of the authors' release (docs/published.md), in plain torch on any device.

Features are integers, ±ONE for ±1. Sums and products are exact int64, and a weight is float64 made from + − × ÷ √, one
operation at a time. So labels are the same bit for bit on every device, alone and in any batch.
"""

import torch
from torch import Tensor

from spit.kernels.portable import Levels, join

ONE = 2**24
"""Features are integers; ±ONE stands for ±1. Four products of two features fit float64 exactly."""

STEPS = 65535  # a similarity of −1 to 1 is rounded to one of so many steps, 16 bits
LOOP_MEAN, LOOP_CLIP = 2, 0.75  # a self-loop compares its region with twice the mean size


def published_superpixels(features: Tensor, levels: int, compactness: float, threshold: float) -> Levels:
    """Hierarchical partitions as the release makes them of one image without padding.

    At each level every region joins the neighbour, or itself, of the largest ``round((w + 1) / 2 · 65535)``; ties go to
    the highest number. w is the cosine of the regions' features. From the second level on a region may stay alone, with
    weight (|π_u| − 2 mean) / std of the image's region sizes, clipped to ±0.75. The features of the new region are the
    unweighted mean of those that joined.

    Args:
        levels: T, how many times every region joins its best neighbour.
        compactness: λ of ``(1 − λ) w + λ (2δ − 1)`` with δ = 4 (|π_u| + |π_v|) / (h + w)², h and w the sides of the
            joint box; in a self-loop the region counts once.
        threshold: after the last level, join neighbours whose difference of features has a range over the channels,
            largest minus smallest, below this; 0 joins none.

    Shape:
        features ``(B, C, H, W)`` of any integer dtype; each level as in :func:`spit.kernels.superpixels`.
    """
    graph = _Graph(features)
    found = [graph.contract(_break_pairs(graph.choose(compactness, loops=level > 0))) for level in range(levels)]
    if threshold > 0:
        found.append(graph.contract(graph.close(threshold)))
    return found


class _Graph:
    """The regions of all images, image by image, and the edges between neighbours; at first every pixel is a region.

    Shape:
        image_of and sizes ``(V,)``, u and v ``(E,)``, features ``(V, C)``, corners ``(V, 4)``: first row and column,
        and minus the last ones. All int64.
    """

    def __init__(self, pixels: Tensor) -> None:
        self.batch, channels, height, width = pixels.shape
        shape, device = (self.batch, height, width), pixels.device
        numbers = torch.arange(self.batch * height * width, device=device).view(shape)
        y = torch.arange(height, device=device)[:, None].expand(shape).flatten()
        x = torch.arange(width, device=device).expand(shape).flatten()
        self.image_of = torch.arange(self.batch, device=device).repeat_interleave(height * width)
        self.u = torch.cat([numbers[:, :-1].flatten(), numbers[:, :, :-1].flatten()])
        self.v = torch.cat([numbers[:, 1:].flatten(), numbers[:, :, 1:].flatten()])
        self.features = pixels.movedim(1, -1).reshape(-1, channels).long()
        self.sizes = torch.ones_like(y)
        self.corners = torch.stack([y, x, -y, -x], 1)

    def choose(self, compactness: float, loops: bool) -> Tensor:
        """The neighbour, or itself, that each region joins, ``(V,)``."""
        count = len(self.sizes)
        own = torch.arange(count, device=self.u.device)
        squares = (self.features * self.features).sum(1).double()
        dots = (self.features[self.u] * self.features[self.v]).sum(1).double()
        steps = self._pack(dots / (squares[self.u] * squares[self.v]).sqrt().clamp_min(1), self.u, self.v, compactness)
        keys = torch.full_like(own, -1)  # step · V + number: the largest is the best, of equals the highest number
        for tails, heads in ((self.u, self.v), (self.v, self.u)):
            keys.scatter_reduce_(0, tails, steps * count + heads, "amax")
        if loops:
            keys = torch.maximum(keys, self._pack(self._loops(), own, own, compactness) * count + own)
        return torch.where(keys < 0, own, keys % count)

    def _pack(self, weights: Tensor, u: Tensor, v: Tensor, compactness: float) -> Tensor:
        """The weights of pairs, with compactness, in 16 bits."""
        if compactness > 0:
            sizes = self.sizes[u] if u is v else self.sizes[u] + self.sizes[v]
            perimeter = (2 - torch.minimum(self.corners[u], self.corners[v]).sum(1)).double()  # half of it, in pixels
            density = (4 * sizes).double() / (perimeter * perimeter)
            weights = (1 - compactness) * weights + compactness * (2 * density - 1)
        return ((weights + 1) / 2 * STEPS).round().long()

    def _loops(self) -> Tensor:
        """The weight of staying alone, from the sizes in each image, ``(V,)``."""
        regions, total, squares = (
            self.sizes.new_zeros(self.batch).index_add_(0, self.image_of, values).double()
            for values in (torch.ones_like(self.sizes), self.sizes, self.sizes * self.sizes))
        mean = total / regions
        spread = (squares / regions - mean * mean).clamp_min(0).sqrt()  # 0 if all are equal: the weight is −clip then
        loops = (self.sizes.double() - LOOP_MEAN * mean[self.image_of]) / spread[self.image_of]
        return loops.clamp(-LOOP_CLIP, LOOP_CLIP)

    def close(self, threshold: float) -> Tensor:
        """The smallest region that each is joined to by the final merge, ``(V,)``."""
        low, high = (self.features[self.u] - self.features[self.v]).aminmax(dim=1)
        near = (high - low).double() < threshold * ONE
        return join(len(self.sizes), self.u[near], self.v[near])

    def contract(self, parents: Tensor) -> tuple[Tensor, Tensor]:
        """Make a region of each tree; the new regions in the order of their roots."""
        while not torch.equal(parents, above := parents[parents]):
            parents = above
        roots = parents == torch.arange(len(parents), device=parents.device)
        labels = (roots.cumsum(0) - 1)[parents]
        image_of = self.image_of[roots]
        counts = torch.bincount(image_of, minlength=self.batch)
        level = (labels - (counts.cumsum(0) - counts)[self.image_of]).int(), counts
        self._merge(labels, image_of)
        return level

    def _merge(self, labels: Tensor, image_of: Tensor) -> None:
        count = len(image_of)
        sums = self.features.new_zeros(count, self.features.shape[1]).index_add_(0, labels, self.features)
        self.features = (sums.double() / torch.bincount(labels, minlength=count)[:, None]).round().long()
        self.sizes = self.sizes.new_zeros(count).index_add_(0, labels, self.sizes)
        self.corners = self.corners.new_zeros(count, 4).scatter_reduce_(
            0, labels[:, None].expand(-1, 4), self.corners, "amin", include_self=False)
        u, v = labels[self.u], labels[self.v]
        apart = u != v
        self.image_of, self.u, self.v = image_of, u[apart], v[apart]


def _break_pairs(chosen: Tensor) -> Tensor:
    """Make the higher of two regions that chose each other a root."""
    own = torch.arange(len(chosen), device=chosen.device)
    return torch.where((chosen[chosen] == own) & (own > chosen), own, chosen)
