"""Random Voronoi cells: the control tokenizer of RViT (§1.1, App. C)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spit import kernels
from spit.images import quantize
from spit.kernels.options import VoronoiOptions
from spit.options import documented
from spit.partition import Partition
from spit.tokenizers.base import Tokenizer
from spit.tokens import offsets_of


@documented
@dataclass(frozen=True)
class VoronoiTokenizer(VoronoiOptions, Tokenizer):
    """Each pixel belongs to the nearest of ``cells`` random sites.

    The sites are drawn from the seed and the image's own 8-bit pixels: images get different cells, and an image always
    gets the same ones, in any batch. The paper cycles through precomputed tessellations instead.

    Example:
        >>> import spit, torch
        >>> spit.VoronoiTokenizer(64, seed=1)(torch.rand(2, 3, 48, 80))
        Partition(2 images of 48×80, regions [64, 64])
    """

    family = "voronoi"

    def partition(self, block: Tensor) -> Partition:
        batch, _, height, width = block.shape
        cells = self.count(height, width)
        sites = kernels.draw_sites(quantize(block), cells, self.seed)
        labels = kernels.nearest_sites(sites, height, width)
        return Partition._trusted((labels,), offsets_of(torch.full((batch,), cells, device=block.device)))

    def partition_at(self, block: Tensor, count: int) -> Partition:
        """As many cells."""
        return self.replace(cells=count).partition(block)
