"""φ as a whole: colour, position and texture of each region, side by side (§2.3)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spit import kernels
from spit.features.color import FILLS, NORMALIZATIONS, color_features, squares
from spit.features.gradient import gradient_features
from spit.features.position import position_features
from spit.images import Images, image_blocks, to_float
from spit.partition import Partition
from spit.tokens import Tokens


@dataclass(frozen=True)
class FeatureExtractor:
    """The interpolating feature extractor φ; itself its configuration, without parameters (§2.3).

    A row of its tokens is ``[ξ^col, ξ^pos, ξ^grad]``: colour (C, K, K), then position (K, K), then
    gradient (K, K), each flattened.

    Args:
        channels: C of the images.
        resolution: K of the colour patches, the paper's β.
        position_bins: K of the position histogram.
        position_sigma: its bandwidth; 0 is the empirical histogram.
        gradients: whether ξ^grad is there; without it φ is *gradient excluding*.
        gradient_bins: K of the gradient histogram.
        gradient_sigma: its bandwidth; 0 is the empirical histogram.
        normalization: of the colours: ``"contrast"`` (App. B, in [−1, 1]), ``"imagenet"`` (mean and
            std, for weights that come from timm) or ``"none"``.
        fill: what a colour patch has where other regions are: ``"zero"`` (the paper), ``"mean"``, the
            region's own mean colour, or ``"image"``, what is there: nothing is masked, and the box is the smallest
            square around the region, as a ViT sees squares.

    Note:
        Only the colour features are differentiable with respect to the images.
    """

    channels: int = 3
    resolution: int = 16
    position_bins: int = 16
    position_sigma: float = 0.025
    gradients: bool = True
    gradient_bins: int = 16
    gradient_sigma: float = 0.025
    normalization: str = "contrast"
    fill: str = "zero"

    def __post_init__(self) -> None:
        for name in ("channels", "resolution", "position_bins", "gradient_bins"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"expected an int for {name}, got {type(value).__name__}")
            if value < 1:
                raise ValueError(f"expected {name} of at least 1, got {value}")
        for name in ("position_sigma", "gradient_sigma"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"expected a finite {name} of at least 0, got {value}; 0 is the empirical histogram")
        if self.normalization not in NORMALIZATIONS:
            raise ValueError(f"expected normalization to be one of {', '.join(NORMALIZATIONS)}, "
                             f"got {self.normalization!r}")
        if self.fill not in FILLS:
            raise ValueError(f"expected fill to be one of {', '.join(FILLS)}, got {self.fill!r}")

    @property
    def width(self) -> int:
        """Features of a token: C·K² for colour, K² for position and K² for gradients."""
        texture = self.gradient_bins**2 if self.gradients else 0
        return self.channels * self.resolution**2 + self.position_bins**2 + texture

    def __call__(self, images: Images, partition: Partition) -> Tokens:
        """One feature vector a region.

        Args:
            images: what :func:`spit.images.image_blocks` takes.
            partition: of those images, in their order; its ``frames``, where it has them, are
                sampled for colour instead of the tight boxes.

        Shape:
            ``(B, C, H, W)`` and ΣN regions to tokens ``(ΣN, width)`` float32.

        Raises:
            ValueError: the images have another number of channels, or are not those of the
                partition by their number, sizes or device.
        """
        features = []
        first = 0
        pairs = zip(self._match(image_blocks(images), partition), partition.packed_blocks(), strict=True)
        for block, (labels, offsets) in pairs:
            if partition.frames is None:
                boxes = kernels.region_boxes(labels, offsets)
                windows = squares(boxes, *labels.shape[1:]) if self.fill == "image" else boxes
            else:
                windows = boxes = partition.frames[first : first + int(offsets[-1])]
            first += len(boxes)
            parts = [
                color_features(block, labels, offsets, windows, self.resolution, self.normalization, self.fill),
                position_features(labels, offsets, self.position_bins, self.position_sigma, boxes),
            ]
            if self.gradients:
                parts.append(gradient_features(block, labels, offsets, self.gradient_bins, self.gradient_sigma, boxes))
            features.append(torch.cat(parts, dim=1))
        return Tokens(torch.cat(features) if len(features) > 1 else features[0], partition.offsets)

    def _match(self, blocks: Sequence[Tensor], partition: Partition) -> Sequence[Tensor]:
        """The images, uint8 or float32, in the blocks of the partition."""
        for block in blocks:
            if block.shape[1] != self.channels:
                raise ValueError(f"expected images with {self.channels} channels, got shape {tuple(block.shape)}; "
                                 f"FeatureExtractor(channels={block.shape[1]}) takes those")
            if block.device != partition.offsets.device:
                raise ValueError(f"expected images and partition on one device, got {block.device} and "
                                 f"{partition.offsets.device}; tokenize the images where they are")
        images = sum(len(block) for block in blocks)
        if images != len(partition):
            raise ValueError(f"expected the partition of these {images} images, got one of {len(partition)}; "
                             "tokenize the same images")
        sizes = [block.shape[-2:] for block in blocks for _ in block]
        labeled_sizes = [block.shape[-2:] for block in partition.blocks for _ in block]
        for index, (size, labeled) in enumerate(zip(sizes, labeled_sizes, strict=True)):
            if size != labeled:
                raise ValueError(f"expected the partition of these images, got labels of {labeled[0]}×{labeled[1]} "
                                 f"for image {index} of {size[0]}×{size[1]}; tokenize the same images")
        if [len(block) for block in blocks] == [len(block) for block in partition.blocks]:
            return [block if block.dtype == torch.uint8 else block.float() for block in blocks]
        singles = iter([to_float(image) for block in blocks for image in block])
        return [torch.stack([next(singles) for _ in block]) for block in partition.blocks]
