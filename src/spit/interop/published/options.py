"""The options of the release's tokenizers and features."""

import math
from dataclasses import dataclass

from spit.kernels.options import FeatureOptions, SuperpixelOptions, VoronoiOptions
from spit.options import Options, option, same

TOKENIZERS = {"patch": "patch", "voronoi": "published_voronoi", "superpixel": "published"}
"""The tokenizers of the release's models, by the names of spit's own of their kind."""


@dataclass(frozen=True)
class PublishedOptions(Options):
    """The options of :class:`~spit.interop.published.tokenizers.PublishedTokenizer`."""

    levels: int = same(SuperpixelOptions, "levels", 4)
    compactness: float = option(
        0.0, "Weight λ of the bounding box's density beside similarity; models of the release without gradients have "
             "0.1", least=0, most=1)
    merge_threshold: float = option(
        0.0, "After the last level, join neighbours whose features differ by less than this range over the channels; "
             "0 joins none", least=0, most=1e6)
    refine: int = same(SuperpixelOptions, "refine", 0)


@dataclass(frozen=True)
class PublishedVoronoiOptions(VoronoiOptions):
    """The options of :class:`~spit.interop.published.tokenizers.PublishedVoronoiTokenizer`."""

    cells: int | None = option(None, "Number of cells (default: √(H·W), rounded)", least=1)

    def default_cells(self, pixels: int) -> int:
        return round(math.sqrt(pixels))


@dataclass(frozen=True)
class PublishedFeatureOptions(Options):
    """The options of :class:`~spit.interop.published.features.PublishedFeatures`."""

    channels: int = option(3, "Channels of the images: R, G and B", least=3, most=3)
    resolution: int = option(16, "Side K of the colour patches and of both histograms", least=1, most=1024)
    position_sigma: float = same(FeatureOptions, "position_sigma", 0.025)
    gradients: bool = same(FeatureOptions, "gradients", True)
    gradient_sigma: float = same(FeatureOptions, "gradient_sigma", 0.025)
