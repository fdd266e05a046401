"""φ for other people's backbones: a patch of pixels for each region, and where it lies on the patch grid.

A ViT reads a position from a table over the cells of a grid. A region reads that table at its centroid, between four
cells, or as an average over the cells that it covers. For square patches both are the patch's own cell, so nothing
changes there (Prop. 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from spit import kernels
from spit.features.extractor import FeatureExtractor, check_pair, like_blocks
from spit.images import Images, image_blocks, to_float
from spit.kernels.windows import cell_weights, crops, squares
from spit.options import Options, documented, option
from spit.partition import Partition
from spit.parts import FEATURES
from spit.pooling import cell_shares
from spit.seams.seam import Grid
from spit.tokens import Tokens

Embed = Literal["crop", "window", "pool"]
Place = Literal["centroid", "average"]
GRID = 2  # columns that hold an image's rows and columns of cells


class Placed(NamedTuple):
    """The columns of a token's features, apart.

    Shape:
        pixels ``(ΣN, C·p·p)``, region ``(ΣN, ·)``, grids one of each image, weights ``(ΣN, cells)``, padded to the
        largest grid; the rows add up to 1.
    """

    pixels: Tensor
    region: Tensor
    grids: tuple[Grid, ...]
    weights: Tensor


@documented
@dataclass(frozen=True)
class CropExtractor(Options):
    """Pixels of each region as a patch of the backbone's, and its place on the patch grid.

    ``embed`` says what a token sees:

    * ``"crop"``: one patch of pixels around the region's centroid, at their own scale. Pixels of neighbours are in it,
      and a large region is seen in part.
    * ``"window"``: the square around the whole region, scaled to one patch.
    * ``"pool"``: the mean of the image's own square patches, weighted by the region's share of each.

    ``place`` says how it reads the table of positions: between four cells, at the region's centroid, or the average
    over all cells that it covers.

    Example:
        >>> import spit, torch
        >>> from spit.seams import CropExtractor
        >>> images = torch.rand(1, 3, 64, 64)
        >>> CropExtractor(patch=16)(images, spit.PatchTokenizer(16)(images)).values.shape  # 3·16² + 2 + 16 cells
        torch.Size([16, 786])
    """

    patch: int = option(16, "Side of the backbone's patches in pixels", least=1, most=2**12)
    channels: int = option(3, "Channels of the images", least=1)
    embed: Embed = option("crop", "What a token sees")
    place: Place = option("centroid", "Where a token reads the table of positions")
    region: bool = option(False, "Add the features of spit's own φ, for a branch that is trained")

    @property
    def pixels(self) -> int:
        """Columns of pixels."""
        return self.channels * self.patch**2

    @property
    def width(self) -> int:
        """Columns that do not depend on the image's size."""
        return self.pixels + self.region_width + GRID

    @property
    def region_width(self) -> int:
        """Columns of spit's own φ."""
        return self._own.width if self.region else 0

    @property
    def _own(self) -> FeatureExtractor:
        return FeatureExtractor(channels=self.channels, position_bins=4)

    def grid(self, height: int, width: int) -> Grid:
        """Rows and columns of cells of an image."""
        return -(-height // self.patch), -(-width // self.patch)

    def __call__(self, images: Images, partition: Partition) -> Tokens:
        """One row a region: pixels, spit's own features if asked for, the grid, and the share of each cell.

        Args:
            images: what :func:`spit.images.image_blocks` takes.
            partition: of those images, in their order.
        """
        blocks = image_blocks(images)
        check_pair(blocks, partition, self.channels)
        paired = like_blocks(blocks, partition)
        parts = [self._describe(to_float(block), labels, offsets)
                 for block, (labels, offsets) in zip(paired, partition.packed_blocks(), strict=True)]
        cells = max(weights.shape[1] for _, weights in parts)
        values = torch.cat([torch.cat([pixels, F.pad(weights, (0, cells - weights.shape[1]))], 1)
                            for pixels, weights in parts])
        if self.region:
            own = self._own.of_checked(blocks, partition).values
            values = torch.cat([values[:, : self.pixels], own, values[:, self.pixels :]], 1)
        return Tokens(values, partition.offsets).with_counts(partition.host_counts)

    def _describe(self, block: Tensor, labels: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels with the grid's columns behind, and weights of the cells, of one block."""
        height, width = labels.shape[1:]
        grid = self.grid(height, width)
        part = Partition._trusted((labels,), offsets)
        windows = self.windows(part)
        if windows is None:
            pixels = _mean_patches(block, torch.cat(cell_shares(part, self.patch)), offsets, self.patch)
        else:
            pixels = kernels.color_patches(block, labels, offsets, windows, self.patch, False).flatten(1)
        if self.place == "average":
            weights = torch.cat(cell_shares(part, self.patch))
        else:
            weights = grid_weights((part.centroids() + 0.5) / self.patch - 0.5, grid)
        return torch.cat([pixels, pixels.new_tensor(grid).expand(len(pixels), GRID)], 1), weights

    @property
    def resolution(self) -> int:
        """Samples along a side of a token's pixels."""
        return self.patch

    def mean_color(self, image: Tensor) -> Tensor:
        """The mean of an image's colours as γ sees them, ``(C, 1)``."""
        return to_float(image).mean((1, 2))[:, None]

    def windows(self, partition: Partition) -> Tensor | None:
        """The window of each region of one block that its token sees, ``(ΣN, 4)`` int32; None if it pools patches."""
        if self.embed == "pool":
            return None
        height, width = partition.blocks[0].shape[1:]
        if self.embed == "window":
            return cast(Tensor, squares(partition.boxes(), height, width))
        corners = crops(partition.centroids(), self.patch, height, width).int()
        return torch.cat([corners, corners + self.patch], 1)

    def split(self, features: Tokens) -> Placed:
        """The columns apart; waits for a GPU once."""
        values, (wide, own) = features.values, (self.pixels, self.region_width)
        first = features.offsets[:-1].clamp(max=len(values) - 1)  # an image without tokens has any grid
        sizes = values[first, wide + own : wide + own + GRID].int().tolist() if len(values) else [(1, 1)] * len(first)
        return Placed(values[:, :wide], values[:, wide : wide + own], tuple((rows, columns) for rows, columns in sizes),
                      values[:, wide + own + GRID :])


def grid_weights(places: Tensor, grid: Grid) -> Tensor:
    """Bilinear weights of the cells of a grid around places in cells, ``(N, 2)`` to ``(N, cells)``."""
    rows, columns = (torch.arange(side, device=places.device, dtype=places.dtype) for side in grid)
    return cast(Tensor, cell_weights(places, rows, columns))


def _mean_patches(block: Tensor, shares: Tensor, offsets: Tensor, patch: int) -> Tensor:
    """The mean of an image's square patches in each region, ``(ΣN, C·p·p)``."""
    height, width = block.shape[2:]
    whole = F.pad(block, (0, -width % patch, 0, -height % patch))
    patches = F.unfold(whole, patch, stride=patch).transpose(1, 2)  # (B, cells, C·p·p)
    counts = offsets.diff().tolist()
    return torch.cat([own @ image for own, image in zip(shares.split(counts), patches, strict=True)])


def by_grid(grids: Sequence[Grid], counts: Sequence[int]) -> list[tuple[Grid, slice]]:
    """Runs of images of one grid, as slices of their rows."""
    runs: list[tuple[Grid, slice]] = []
    row = 0
    for grid, count in zip(grids, counts, strict=True):
        if runs and runs[-1][0] == grid:
            runs[-1] = grid, slice(runs[-1][1].start, row + count)
        else:
            runs.append((grid, slice(row, row + count)))
        row += count
    return runs


FEATURES.register("crops", CropExtractor)
