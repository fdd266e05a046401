"""φ as a whole: colour, position and texture of each region, side by side (§2.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from spit import kernels
from spit.contrast import arcsinh
from spit.features.color import color_features, prepare, squares
from spit.images import Images, image_blocks, to_float
from spit.kernels.options import FeatureOptions
from spit.kernels.recording import round_up, step_of
from spit.options import documented
from spit.partition import Partition
from spit.parts import check_partition
from spit.tokens import Tokens


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
        features: list[Tensor] = []
        first = 0
        tight = partition.block_boxes()
        blocks = match_images(image_blocks(images), partition, self.channels)
        pairs = zip(blocks, partition.packed_blocks(), strict=True)
        for index, (block, (labels, offsets)) in enumerate(pairs):
            if partition.frames is None and kernels.on_gpu(block) and not block.requires_grad:
                features.append(self._recorded(block, labels, offsets, partial(partition.block_total, index), dtype))
                continue
            gradients = self._gradients(block)  # before the boxes, which wait for a GPU
            if partition.frames is None:
                boxes = next(tight)
                windows = self._windows(boxes, labels)
            else:
                windows = boxes = partition.frames[first : first + int(offsets[-1])]
            first += len(boxes)
            features.append(self._features(block, gradients, labels, offsets, boxes, windows))
        values = torch.cat(features) if len(features) > 1 else features[0]
        return Tokens(values, partition.offsets).with_counts(partition.host_counts)

    def padded(self, block: Tensor, labels: Tensor, offsets: Tensor, rows: int, dtype: torch.dtype) -> Tensor:
        """The features of one block on a GPU, ``(rows, width)``, without waiting for the number of regions.

        Args:
            rows: at least ΣN; the rows beyond mean nothing.
            dtype: of the answer.
        """
        boxes = kernels.region_boxes(labels, offsets, rows)
        windows = self._windows(boxes, labels)
        return self._features(block, self._gradients(block), labels, offsets, boxes, windows, dtype)

    def _recorded(self, block: Tensor, labels: Tensor, offsets: Tensor, total: Callable[[], int],
                  dtype: torch.dtype) -> Tensor:
        """The features of one block on a GPU, from a recording for its number of regions, rounded up.

        Args:
            total: returns the number of regions, and may wait for the device.
        """
        features, = kernels.recorded(_padded, (block, labels, offsets),
                                     lambda: (self, round_up(total(), step_of(total())), dtype))
        return features[: total()]

    def _gradients(self, block: Tensor) -> Tensor | None:
        return arcsinh(kernels.scharr(block.detach()), self.gradient_contrast) if self.gradients else None

    def _windows(self, boxes: Tensor, labels: Tensor) -> Tensor:
        """Where colours are sampled."""
        return squares(boxes, *labels.shape[1:]) if self.fill == "image" else boxes

    def _features(self, block: Tensor, gradients: Tensor | None, labels: Tensor, offsets: Tensor, boxes: Tensor,
                  windows: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The features of the regions of one block."""
        position, texture = (self.position_bins, self.position_sigma), (self.gradient_bins, self.gradient_sigma)
        if self.fill != "mean":
            return kernels.region_features(*prepare(block, self.normalization), gradients, labels, offsets, boxes,
                                           windows, self.resolution, self.fill == "zero", position, texture, dtype)
        parts = [color_features(block, labels, offsets, windows, self.resolution, self.normalization, self.fill),
                 kernels.position_histogram(labels, offsets, *position, boxes)]
        if gradients is not None:
            parts.append(kernels.gradient_histogram(gradients, labels, offsets, *texture, boxes))
        return torch.cat(parts, dim=1).to(dtype)


def match_images(blocks: Sequence[Tensor], partition: Partition, channels: int) -> Sequence[Tensor]:
    """The images, uint8 or float32, in the blocks of their partition; raises if it is of others, or the channels are.

    Args:
        channels: that the images should have.
    """
    for block in blocks:
        if block.shape[1] != channels:
            raise ValueError(f"expected images with {channels} channels, got shape {tuple(block.shape)}; "
                             f"FeatureExtractor(channels={block.shape[1]}) takes those")
    check_partition(partition, blocks, "tokenize the same images")
    if [len(block) for block in blocks] == [len(block) for block in partition.blocks]:
        return [block if block.dtype == torch.uint8 else block.float() for block in blocks]
    singles = iter([to_float(image) for block in blocks for image in block])
    return [torch.stack([next(singles) for _ in block]) for block in partition.blocks]


def _padded(tensors: tuple[Tensor, ...], options: tuple[FeatureExtractor, int, torch.dtype]) -> tuple[Tensor, ...]:
    """:meth:`FeatureExtractor.padded`, to be recorded."""
    block, labels, offsets = tensors
    extractor, rows, dtype = options
    return (extractor.padded(block, labels, offsets, rows, dtype),)
