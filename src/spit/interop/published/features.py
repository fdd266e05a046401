"""φ as the authors' release computes it for one image without padding (docs/published.md)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spit import kernels
from spit.contrast import arcsinh
from spit.features.color import normalize
from spit.features.extractor import check_pair, like_blocks
from spit.images import Images, image_blocks
from spit.interop.published.options import PublishedFeatureOptions
from spit.kernels.tables import GRADIENT_CONTRAST
from spit.options import documented
from spit.partition import Partition
from spit.parts import register_features
from spit.tokens import Tokens

HISTOGRAM_SCALE = 4.0


@documented
@dataclass(frozen=True)
class PublishedFeatures(PublishedFeatureOptions):
    """The features of the authors' release: bin by bin three colours, position and gradient.

    Example:
        >>> import spit, torch
        >>> image = torch.rand(3, 64, 64)
        >>> PublishedFeatures()(image, spit.PatchTokenizer(16)(image))
        Tokens(1 image, values (16, 1280) torch.float32)
    """

    @property
    def width(self) -> int:
        """Features of a token."""
        return self.resolution**2 * (5 if self.gradients else 4)

    def __call__(self, images: Images, partition: Partition) -> Tokens:
        """One feature vector a region, see :class:`spit.FeatureExtractor`."""
        blocks = image_blocks(images)
        check_pair(blocks, partition, self.channels)
        sigma = self.gradient_sigma if self.gradients else None
        pairs = zip(like_blocks(blocks, partition), partition.packed_blocks(), strict=True)
        features = [published_tokens(block, labels, offsets, self.resolution, self.position_sigma, sigma)
                    for block, (labels, offsets) in pairs]
        return Tokens(torch.cat(features), partition.offsets).with_counts(partition.host_counts)


def published_tokens(images: Tensor, labels: Tensor, offsets: Tensor, bins: int, position_sigma: float,
                     gradient_sigma: float | None) -> Tensor:
    """Colour, position and gradient of each region, interleaved: for each of the K² bins its channels side by side.

    Args:
        bins: K, of the colour patches and of both histograms.
        gradient_sigma: bandwidth of the gradient histogram; None is a model without gradients. Its fourth channel is
            then not the position histogram but :func:`misread_positions`.

    Shape:
        images ``(B, 3, H, W)`` uint8 or in [0, 1], labels ``(B, H, W)`` int32, offsets ``(B + 1,)`` to
        ``(ΣN, K² · 5)`` float32, or ``(ΣN, K² · 4)`` without gradients.
    """
    boxes = kernels.region_boxes(labels, offsets)
    colors = normalize(images, "contrast")
    gradients = arcsinh(kernels.scharr(images.detach()), GRADIENT_CONTRAST)
    positions = _positions(labels)
    if gradient_sigma is None:
        fields = [(misread_positions(colors.detach(), positions, gradients), position_sigma)]
    else:
        fields = [(positions, position_sigma), (gradients, gradient_sigma)]
    histograms = [HISTOGRAM_SCALE * kernels.gradient_histogram(field.float().contiguous(), labels, offsets, bins, sigma,
                                                               boxes) for field, sigma in fields]
    patches = _color_patches(colors, labels, offsets, boxes.long(), bins).flatten(1, 2)  # (ΣN, K², 3)
    return torch.cat([patches, torch.stack(histograms, 2)], 2).flatten(1)


def misread_positions(colors: Tensor, positions: Tensor, gradients: Tensor) -> Tensor:
    """What a release model without gradients has in place of positions.

    The release holds seven numbers for each pixel, (R, G, B, y, x, ∇y, ∇x), one pixel after another, and reads them in
    rows of five: "y" and "x" of pixel p are numbers 5p + 3 and 5p + 4. One in seven is a true position.

    Shape:
        ``(B, 3, H, W)``, ``(B, 2, H, W)`` and ``(B, 2, H, W)`` to ``(B, 2, H, W)``.
    """
    batch, _, height, width = colors.shape
    numbers = torch.cat([colors, positions, gradients], 1).movedim(1, -1).flatten(1)  # (B, 7·H·W)
    return numbers[:, : 5 * height * width].view(batch, height, width, 5)[..., 3:].movedim(-1, 1)


def _positions(labels: Tensor) -> Tensor:
    """The place of the upper left corner of each pixel, 2i / max(H, W) − 1, ``(B, 2, H, W)``."""
    _, height, width = labels.shape
    y, x = (2 * torch.arange(size, device=labels.device, dtype=torch.float64) / max(height, width) - 1
            for size in (height, width))
    place = torch.stack([y[:, None].expand(height, width), x.expand(height, width)])
    return place.float().expand(len(labels), -1, -1, -1)


def _color_patches(images: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, bins: int) -> Tensor:
    """Samples between the outer pixels of each box, bilinear: the colours of all pixels, times the sampled mask.

    Sample (i, j) of a box with rows a to d and columns b to e, ends included, is at row a + i (d − a) / (K − 1) and
    column b + j (e − b) / (K − 1). Differentiable with respect to the images.

    Shape:
        images ``(B, C, H, W)``, boxes ``(ΣN, 4)`` to ``(ΣN, K, K, C)``.
    """
    image_of = torch.arange(len(labels), device=labels.device).repeat_interleave(offsets.diff())
    label_of = torch.arange(len(boxes), device=labels.device) - offsets[image_of]
    image_of, label_of = image_of[:, None, None], label_of[:, None, None]
    colors = images.new_zeros(len(boxes), bins, bins, images.shape[1])
    mask = images.new_zeros(len(boxes), bins, bins)
    for y, y_weight in _taps(boxes[:, 0], boxes[:, 2], bins):
        for x, x_weight in _taps(boxes[:, 1], boxes[:, 3], bins):
            ys, xs = y[:, :, None], x[:, None]
            weight = (y_weight[:, :, None] * x_weight[:, None]).to(images.dtype)
            colors = colors + weight[..., None] * images[image_of, :, ys, xs]
            mask = mask + weight * (labels[image_of, ys, xs] == label_of)
    return colors * mask[..., None]


def _taps(start: Tensor, end: Tensor, bins: int) -> list[tuple[Tensor, Tensor]]:
    """The two pixels between which each sample lies, with their weights, each ``(ΣN, K)``."""
    last = (end - start - 1)[:, None]
    intervals = max(bins - 1, 1)
    place = torch.arange(bins, device=start.device) * last
    low, weight = place // intervals, (place % intervals).double() / intervals
    high = torch.minimum(low + 1, last)
    return [(start[:, None] + low, 1 - weight), (start[:, None] + high, weight)]


register_features("published", PublishedFeatures)
