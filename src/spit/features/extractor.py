"""φ as a whole: colour, position and texture of each region, side by side (§2.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor

from spit import kernels
from spit.contrast import arcsinh
from spit.features.color import color_features, normalize, prepare
from spit.images import Images, image_blocks, to_float
from spit.kernels.options import FeatureOptions
from spit.kernels.recording import round_up, step_of
from spit.kernels.windows import cell_weights, crops, squares
from spit.options import documented
from spit.partition import Partition
from spit.parts import check_partition
from spit.tokens import Tokens

SHOWING = ("image", "crop")  # fills that show the pixels of neighbours


@documented
@dataclass(frozen=True)
class FeatureExtractor(FeatureOptions):
    """The interpolating feature extractor φ, without parameters (§2.3).

    A token's features are ``[ξ^col, ξ^pos, ξ^grad]``: colour (C, K, K), position (K, K) and gradient (K, K), each
    flattened. :mod:`spit.kernels` has their formulas.

    Note:
        Gradients are those of the grey image before its colours are normalised. The authors' release adds an arcsinh
        contrast to them; ``gradient_contrast=27.8`` does the same. Only the colour features are differentiable with
        respect to the images: with the paper's narrow kernels a histogram is nearly a count, whose slope carries
        little.

    Example:
        >>> import spit, torch
        >>> images = torch.rand(1, 3, 64, 64)
        >>> spit.FeatureExtractor()(images, spit.PatchTokenizer(16)(images))
        Tokens(1 image, values (16, 1280) torch.float32)
    """

    @property
    def width(self) -> int:
        """Features of a token: C·K² for colour, K² for position and K² for gradients."""
        texture = self.gradient_bins**2 if self.gradients else 0
        return self.channels * self.resolution**2 + self.position_bins**2 + texture

    def __call__(self, images: Images, partition: Partition, dtype: torch.dtype = torch.float32) -> Tokens:
        """One feature vector a region.

        Args:
            images: what :func:`spit.images.image_blocks` takes.
            partition: of those images, in their order. If it has ``frames``, colour is sampled from these instead of
                the tight boxes.
            dtype: of the answer on a GPU, which writes half precision faster; elsewhere it is float32.

        Shape:
            ``(B, C, H, W)`` and ΣN regions to tokens ``(ΣN, width)``.
        """
        blocks = image_blocks(images)
        check_pair(blocks, partition, self.channels)
        return self.of_checked(blocks, partition, dtype)

    def of_checked(self, blocks: Sequence[Tensor], partition: Partition, dtype: torch.dtype = torch.float32) -> Tokens:
        """The answer for blocks of images that are known to be those of the partition."""
        features: list[Tensor] = []
        totals = [partial(partition.block_total, index) for index in range(len(partition.blocks))]  # wait for a GPU
        frames = None if partition.frames is None else partition.frames.split([total() for total in totals])
        pairs = zip(like_blocks(blocks, partition), partition.packed_blocks(), strict=True)
        for index, (block, (labels, offsets)) in enumerate(pairs):
            if frames is None and kernels.on_gpu(block) and not block.requires_grad and self.fill != "crop":
                features.append(self._recorded((block, labels, offsets), totals[index], dtype))
            else:
                features.append(self.describe(block, labels, offsets, frames=frames and frames[index]))
        values = torch.cat(features) if len(features) > 1 else features[0]
        return Tokens(values, partition.offsets).with_counts(partition.host_counts)

    def windows(self, partition: Partition) -> Tensor | None:
        """The windows whose pixels, also of neighbours, the tokens of one image show; None if they show their own."""
        if self.fill not in SHOWING:
            return None
        return self._windows(partition, partition.boxes()) if partition.frames is None else partition.frames

    def _windows(self, partition: Partition, boxes: Tensor) -> Tensor:
        """The windows of the regions of one block."""
        height, width = partition.blocks[0].shape[1:]
        if self.fill == "image":
            return cast(Tensor, squares(boxes, height, width))
        corners = crops(partition.centroids(), self.resolution, height, width).int()
        return torch.cat([corners, corners + self.resolution], 1)

    def _places(self, partition: Partition) -> Tensor:
        """The bins around the centroid of each region of one block, bilinear, ``(ΣN, K²)``."""
        bins = torch.arange(self.position_bins, device=partition.offsets.device, dtype=torch.float32)
        side = max(partition.blocks[0].shape[1:])
        return cast(Tensor, cell_weights((partition.centroids() + 0.5) * (len(bins) / side) - 0.5, bins, bins))

    def mean_color(self, image: Tensor) -> Tensor:
        """The mean of an image's colours as γ sees them, ``(C, 1)``."""
        return normalize(image[None], self.normalization).mean((2, 3)).T

    def _recorded(self, tensors: tuple[Tensor, ...], total: Callable[[], int], dtype: torch.dtype) -> Tensor:
        """:meth:`describe` from a recording for the number of regions, rounded up."""
        values, = kernels.recorded(_describe, tensors, lambda: (self, round_up(total(), step_of(total())), dtype))
        return values[: total()]

    def describe(self, block: Tensor, labels: Tensor, offsets: Tensor, rows: int | None = None,
                 frames: Tensor | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
        """The features of the regions of one block, ``(rows, width)``.

        Args:
            rows: at least ΣN, so that nothing waits for a GPU (default: ΣN); the rows beyond mean nothing.
            frames: boxes in place of the tight ones.
            dtype: of the answer.
        """
        pixels = block.detach()
        gradients = arcsinh(kernels.scharr(pixels), self.gradient_contrast) if self.gradients else None
        boxes = kernels.region_boxes(labels, offsets, rows) if frames is None else frames
        windows = boxes
        if frames is None and self.fill in SHOWING:
            windows = self._windows(Partition._trusted((labels,), offsets), boxes)
        position, texture = (self.position_bins, self.position_sigma), (self.gradient_bins, self.gradient_sigma)
        apart = self.fill == "mean" or (block.requires_grad and torch.is_grad_enabled())  # colours by another function
        values = kernels.region_features(
            *prepare(pixels, self.normalization), gradients, labels, offsets, boxes, windows, self.resolution,
            self.fill not in SHOWING, position, texture, dtype=torch.float32 if apart else dtype)
        if frames is None and self.fill == "crop" and self.position_sigma == 0:
            first = self.channels * self.resolution**2
            values[:, first : first + self.position_bins**2] = self._places(Partition._trusted((labels,), offsets))
        if not apart:
            return values
        colors = color_features(block, labels, offsets, windows, self.resolution, self.normalization, self.fill)
        return torch.cat([colors, values[:, colors.shape[1] :]], 1).to(dtype)


def check_pair(blocks: Sequence[Tensor], partition: Partition, channels: int) -> None:
    """Raise ValueError if images have another number of channels, or are not those of the partition."""
    for block in blocks:
        if block.shape[1] != channels:
            raise ValueError(f"expected images with {channels} channels, got shape {tuple(block.shape)}; "
                             f"FeatureExtractor(channels={block.shape[1]}) takes those")
    check_partition(partition, blocks, "tokenize the same images")


def like_blocks(blocks: Sequence[Tensor], partition: Partition) -> Sequence[Tensor]:
    """The images, uint8 or float32, in the blocks of their partition."""
    if [len(block) for block in blocks] == [len(block) for block in partition.blocks]:
        return [block if block.dtype == torch.uint8 else block.float() for block in blocks]
    singles = iter([to_float(image) for block in blocks for image in block])
    return [torch.stack([next(singles) for _ in block]) for block in partition.blocks]


def _describe(tensors: tuple[Tensor, ...], options: tuple[FeatureExtractor, int, torch.dtype]) -> tuple[Tensor, ...]:
    """:meth:`FeatureExtractor.describe`, to be recorded."""
    (block, labels, offsets), (extractor, rows, dtype) = tensors, options
    return (extractor.describe(block, labels, offsets, rows, dtype=dtype),)
