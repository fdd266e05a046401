"""τ as the authors' release computes it for one image without padding (docs/published.md)."""

from dataclasses import dataclass

from torch import Tensor

from spit.interop.published.contraction import published_superpixels
from spit.interop.published.options import PublishedOptions, PublishedVoronoiOptions
from spit.interop.published.preprocess import coarse, published_features
from spit.options import documented
from spit.partition import Hierarchy
from spit.parts import register_tokenizer
from spit.tokenizers import NestedTokenizer, VoronoiTokenizer


@documented
@dataclass(frozen=True)
class PublishedTokenizer(PublishedOptions, NestedTokenizer):
    """Superpixels of the authors' release, in plain torch on any device.

    Example:
        >>> import spit, torch
        >>> image = torch.linspace(0, 1, 3 * 32 * 32).view(3, 32, 32)
        >>> len(spit.create_tokenizer("published", levels=2).hierarchy(image))
        3
    """

    def levels_of(self, block: Tensor) -> Hierarchy:
        features = published_features(block)
        return Hierarchy._of(coarse(features), published_superpixels(
            features, self.levels, self.compactness, self.merge_threshold))


@documented
@dataclass(frozen=True)
class PublishedVoronoiTokenizer(PublishedVoronoiOptions, VoronoiTokenizer):
    """Voronoi cells with the default number of the authors' release."""


register_tokenizer("published", PublishedTokenizer)
register_tokenizer("published_voronoi", PublishedVoronoiTokenizer)
