"""Random Voronoi cells: the control tokenizer of RViT (§1.1, App. C)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spit import kernels
from spit.images import quantize
from spit.partition import Partition
from spit.tokenizers.base import Tokenizer, check_whole


@dataclass(frozen=True)
class VoronoiTokenizer(Tokenizer):
    """Each pixel belongs to the nearest of ``cells`` random sites.

    The sites are drawn from the seed and the image's own 8-bit pixels, so that images differ and one
    image always gets the same cells, whatever its batch. The paper cycles through precomputed
    tessellations instead.

    Args:
        cells: how many; None is one for every 16 × 16 pixels: 196, 256 and 576 at 224², 256², 384².
        seed: another seed, other cells.
    """

    name: ClassVar[str] = "voronoi"

    cells: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.cells is not None:
            check_whole("cells", self.cells, 1)
        check_whole("seed", self.seed)

    def partition(self, block: Tensor) -> Partition:
        batch, _, height, width = block.shape
        pixels = height * width
        cells = max(pixels // 256, 1) if self.cells is None else self.cells
        if cells > pixels:
            raise ValueError(f"{cells} Voronoi cells do not fit in an image of {height}×{width} = {pixels} pixels; "
                             "ask for fewer cells or resize the image")
        sites = np.stack([_draw_sites(fingerprint, cells, pixels) for fingerprint in self._fingerprints(block)])
        rows_columns = torch.from_numpy(np.stack([sites // width, sites % width], axis=-1).astype(np.int32))
        labels = kernels.nearest_sites(rows_columns.to(block.device), height, width)
        return Partition.of(labels, torch.full((batch,), cells, device=block.device))

    def _fingerprints(self, block: Tensor) -> list[int]:
        """One number for the pixels of each image and the seed: Σ hash(i) · x_i, modulo 2⁶⁴."""
        pixels = quantize(block).flatten(1).to(torch.int64)  # (B, C·H·W)
        places = np.arange(1, pixels.shape[1] + 1, dtype=np.uint64)
        weights = torch.from_numpy(_mix(places).view(np.int64)).to(block.device)
        sums: list[int] = (pixels * weights).sum(1).tolist()
        return [(value + self.seed * 0x9E3779B97F4A7C15) % 2**64 for value in sums]


def _draw_sites(fingerprint: int, cells: int, pixels: int) -> NDArray[Any]:
    """Distinct pixels in raster order, each as likely as any other."""
    start = np.uint64(fingerprint)
    if 2 * cells > pixels:
        return np.sort(np.argsort(_mix(start + np.arange(pixels, dtype=np.uint64)), kind="stable")[:cells])
    drawn = np.empty(0, np.int64)
    draws = 2 * cells
    while len(drawn) < cells:
        candidates = (_mix(start + np.arange(draws, dtype=np.uint64)) % np.uint64(pixels)).astype(np.int64)
        _, first = np.unique(candidates, return_index=True)
        drawn = candidates[np.sort(first)]
        draws *= 2
    return np.sort(drawn[:cells])


def _mix(x: NDArray[Any]) -> NDArray[Any]:
    """SplitMix64 (Steele, Lea and Flood, 2014): a well-mixed 64-bit number for each counter."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x
