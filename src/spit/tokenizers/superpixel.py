"""Hierarchical superpixels: the tokenizer of SPiT (§2.2, App. B)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spit import kernels
from spit.images import quantize
from spit.kernels.options import Features, SuperpixelOptions
from spit.kernels.rules import Rules
from spit.options import documented
from spit.partition import Hierarchy, Partition
from spit.tokenizers.nested import NestedTokenizer
from spit.tokenizers.preprocess import superpixel_features
from spit.tokens import offsets_of


@documented
@dataclass(frozen=True)
class SuperpixelTokenizer(SuperpixelOptions, NestedTokenizer):
    """Superpixels by parallel edge contraction: at each level every region joins its best neighbour.

    Regions are complete, 4-connected and nested, and the same bit for bit alone or in any batch, on every backend. A
    region has about 4^levels pixels (the count law of App. B), so 4 levels compare with square patches of 16.

    Example:
        >>> import spit, torch
        >>> image = torch.linspace(0, 1, 3 * 32 * 32).view(3, 32, 32)
        >>> part = spit.SuperpixelTokenizer(levels=2, max_tokens=40)(image)
        >>> int(part.counts[0]) <= 40
        True
    """

    def partition(self, block: Tensor) -> Partition:
        if self.method == "tree":
            return self._tree_cut(block, self.tree_count(block[0, 0].numel()), self.refine)
        pixels, options = (quantize(block),), (self.features, self.rules())
        whole = self.max_tokens is None  # nothing there waits for the device
        labels, offsets = kernels.recorded(_cut, pixels, options) if whole else _cut(pixels, options)
        return self.refined(Partition._trusted((labels,), offsets), block)

    def refined(self, part: Partition, block: Tensor) -> Partition:
        return self.partition(block) if self.method == "tree" and self.refine > 0 else super().refined(part, block)

    def _tree_cut(self, block: Tensor, count: int, sweeps: int = 0) -> Partition:
        labels = kernels.tree_labels(quantize(block), count, float(self.compactness), sweeps)
        return Partition._trusted((labels,), offsets_of(torch.full((len(block),), count, device=block.device)))

    def levels_of(self, block: Tensor) -> Hierarchy:
        features = superpixel_features(block, self.features)
        levels = self._tree_levels(block) if self.method == "tree" else kernels.superpixels(features, self.rules())
        return Hierarchy._of(features, levels)

    def _tree_levels(self, block: Tensor) -> kernels.Levels:
        """Cuts of the tree, each with the same share of the regions of the one before."""
        batch, pixels = len(block), block[0, 0].numel()
        share = (self.tree_count(pixels) / pixels) ** (1 / self.levels)
        levels, below = [], torch.arange(pixels, device=block.device).expand(batch, -1)
        for level in range(1, self.levels + 1):
            count = round(pixels * share**level)
            labels = self._tree_cut(block, count).blocks[0].flatten(1)
            parents = labels.new_empty(batch, int(below.max()) + 1).scatter_(1, below, labels)
            levels.append((parents.flatten(), torch.full((batch,), count, device=block.device)))
            below = labels.long()
        return levels


def _cut(pixels: tuple[Tensor, ...], options: tuple[Features, Rules]) -> tuple[Tensor, ...]:
    """Labels and offsets of a batch of 8-bit images."""
    features, rules = options
    labels, counts = kernels.superpixel_labels(superpixel_features(pixels[0], features), rules)
    return labels, offsets_of(counts)
