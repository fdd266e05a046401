"""What is exported: γ, f and h as one dense graph, from token features or, for square patches, from pixels."""

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit.backbone import Block, Transformer
from spit.features import FeatureExtractor
from spit.features.color import NORMALIZATIONS
from spit.model import SpitModel
from spit.tokenizers import PatchTokenizer

Outputs = tuple[Tensor, ...]
OUTPUTS = {"all": ("logits", "class_token", "tokens"), "classes": ("logits", "class_token")}


class TokenGraph(nn.Module):
    """γ, f and h of one image; the number of tokens N may change from call to call.

    Args:
        model: with a :class:`~spit.backbone.Transformer`.
        outputs: a key of OUTPUTS. Without the other tokens, the last block computes the class token alone.

    Shape:
        features ``(N, F)`` float32 to logits ``(1, num_classes)``, class token ``(1, D)`` and the other tokens
        ``(N, D)`` after the final norm, float32 whatever the parameters are.
    """

    kind = "tokens"  # what it takes, and its name in the file
    name = "features"

    def __init__(self, model: SpitModel, outputs: str = "all") -> None:
        super().__init__()
        if not isinstance(model.backbone, Transformer):
            raise TypeError(f"expected a model with backbone 'transformer' to export, got {model.config.backbone!r}")
        self.embedder, self.backbone, self.head = model.embedder, model.backbone, model.head
        self.outputs = OUTPUTS[outputs]

    def forward(self, features: Tensor) -> Outputs:
        logits, class_token, *tokens = self.run(features[None])
        return logits, class_token, *(own[0] for own in tokens)

    def run(self, features: Tensor) -> Outputs:
        """γ, f and h of images with equally many tokens, ``(B, N, F)``."""
        first = self.embedder.class_token
        embedded = self.embedder.projection(features.to(first.dtype))
        values = torch.cat([first.expand(features.shape[0], 1, -1), embedded], 1)
        *blocks, last = cast(Iterable[Block], self.backbone.blocks)
        for block in blocks:
            values = _run(block, values)
        values = self.backbone.norm(_run(last, values, None if "tokens" in self.outputs else 1))
        class_token = values[:, 0]
        answer = self.head(class_token).float(), class_token.float()
        return (*answer, values[:, 1:].float()) if "tokens" in self.outputs else answer


class PixelGraph(TokenGraph):
    """The whole of a ViT on square patches: φ, γ, f and h of images whose sides are multiples of the patch.

    On whole patches of side K, φ's colour patches are the pixels, and its position histogram is the product of one
    histogram of rows and one of columns. Gradient histograms are not computed here: such a model takes features.

    Shape:
        images ``(B, C, H, W)`` float32 in [0, 1] to logits ``(B, num_classes)``, class tokens ``(B, D)`` and the other
        tokens ``(B, N, D)``.
    """

    kind = "pixels"
    name = "images"

    def __init__(self, model: SpitModel, outputs: str = "all") -> None:
        super().__init__(model, outputs)
        if not takes_pixels(model):
            raise ValueError(f"expected a model on square patches, as large as its colour patches, without gradients "
                             f"to export from pixels, got {model.tokenizer} and {model.extractor}; export token "
                             "features, input='tokens'")
        self.side = cast(PatchTokenizer, model.tokenizer).size
        self.extractor = cast(FeatureExtractor, model.extractor)

    def forward(self, images: Tensor) -> Outputs:
        return self.run(self.features(images))

    def features(self, images: Tensor) -> Tensor:
        """φ on square patches, ``(B, N, F)``."""
        phi, side = self.extractor, self.side
        colors = NORMALIZATIONS[phi.normalization](images)
        squares = colors.unflatten(3, (-1, side)).unflatten(2, (-1, side))
        patches = squares.permute(0, 2, 4, 1, 3, 5).flatten(1, 2).flatten(2)  # (B, N, C·K·K)
        height, width = images.shape[2:]
        longest = torch.sym_max(height, width)
        rows, columns = (_positions(size, longest, phi.position_bins, phi.position_sigma).unflatten(0, (-1, side))
                         .mean(1) for size in (height, width))  # (rows, K), (columns, K)
        position = (rows[:, None, :, None] * columns[None, :, None]).flatten(2).flatten(0, 1)  # (N, K·K)
        return torch.cat([patches, position.expand(images.shape[0], -1, -1)], 2)


def takes_pixels(model: SpitModel) -> bool:
    """Whether :class:`PixelGraph` has this model's τ and φ."""
    tokenizer, extractor = model.tokenizer, model.extractor
    return (isinstance(tokenizer, PatchTokenizer) and isinstance(extractor, FeatureExtractor)
            and extractor.resolution == tokenizer.size and not extractor.gradients)


def _run(block: Block, values: Tensor, rows: int | None = None) -> Tensor:
    """One block on images with equally many tokens, ``(B, M, D)``, for their first ``rows`` rows (default: all)."""
    mixed = _attend(block, block.norm1(values), rows)
    values = values[:, :rows] + block.scale1(mixed)
    answer: Tensor = values + block.scale2(block.mlp(block.norm2(values)))
    return answer


def _attend(block: Block, values: Tensor, rows: int | None) -> Tensor:
    """Self-attention of images with equally many tokens, ``(B, M, D)``, for queries of the first ``rows`` rows."""
    attention = block.attention
    width = values.shape[-1]
    weight, bias = attention.qkv.weight, attention.qkv.bias
    query = F.linear(values[:, :rows], weight[:width], None if bias is None else bias[:width])
    both = F.linear(values, weight[width:], None if bias is None else bias[width:])
    heads = (part.unflatten(-1, (attention.heads, -1)).transpose(1, 2) for part in (query, *both.chunk(2, -1)))
    mixed = F.scaled_dot_product_attention(*heads)  # (B, heads, rows, d)
    answer: Tensor = attention.projection(mixed.transpose(1, 2).flatten(2))
    return answer


def _positions(size: int, longest: int, bins: int, sigma: float) -> Tensor:
    """The position histogram of each row of ``size`` rows, ``(size, K)``; see :func:`spit.kernels.position_histogram`.
    """
    place = 2 * torch.arange(size) + 1 - size + longest
    if sigma == 0:
        return (place[:, None] * bins // (2 * longest) == torch.arange(bins)).float()
    centres = (2 * torch.arange(bins) + 1) / bins - 1
    return torch.exp(-((((place.float() / longest - 1)[:, None] - centres) / sigma) ** 2) / 2)
