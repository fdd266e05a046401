"""The options of τ and φ, declared once for tensors (``spit.tokenizers``, ``spit.features``) and arrays."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from spit.kernels.rules import Rules, Similarity
from spit.kernels.tables import FILLS, NORMALIZATIONS
from spit.options import Options, option

Features = Literal["paper", "saturated"]
SelfLoop = Literal["clipped", "paper", "none"]
Method = Literal["paper", "tree"]

TREE_COMPACTNESS = 0.4  # of the methods' default, see docs/superpixels.md

_LOOP_CLIPS: dict[SelfLoop, float | None] = {"clipped": 0.75, "paper": math.inf, "none": None}


@dataclass(frozen=True)
class PatchOptions(Options):
    """The options of :class:`spit.PatchTokenizer`."""

    size: int = option(16, "Side of the squares in pixels", least=1, most=2**16, flag="patch_size")


@dataclass(frozen=True)
class VoronoiOptions(Options):
    """The options of :class:`spit.VoronoiTokenizer`."""

    cells: int | None = option(None, "Number of cells (default: one for every 256 pixels)", least=1)
    seed: int = option(0, "Another seed gives other cells")

    def default_cells(self, pixels: int) -> int:
        """The number of cells of an image of so many pixels, if no other is given."""
        return max(pixels // 256, 1)

    def count(self, height: int, width: int) -> int:
        """The number of cells of an image."""
        pixels = height * width
        cells = self.default_cells(pixels) if self.cells is None else self.cells
        if cells > pixels:
            raise ValueError(f"{cells} Voronoi cells do not fit in an image of {height}×{width} = {pixels} pixels; "
                             "ask for fewer cells or resize the image")
        return cells


@dataclass(frozen=True)
class SuperpixelOptions(Options):
    """The options of :class:`spit.SuperpixelTokenizer`."""

    levels: int = option(4, "Levels T of the hierarchy", least=1, most=64)
    compactness: float = option(
        0.0, "Weight λ of the bounding box's density beside similarity; 1 gives the most compact regions. The "
             "authors' release has another unit: its 0.1 is 0.4706 here. With method tree, the weight of a pixel of "
             "distance beside one step of 255 in colour: 0.4 follows edges, 10 gives nearly squares", least=0, most=1e6)
    merge_threshold: float = option(
        0.0, "After the last level, join neighbours whose mean features, in [-1, 1], are closer than this Euclidean "
             "distance (App. B); 0 joins none", least=0, most=1e6)
    max_tokens: int | None = option(
        None, "Exact upper bound on the regions of an image; the most similar neighbours are joined until it holds "
              "(default: no bound)", least=1)
    refine: int = option(
        0, "Refinement sweeps: boundary pixels move to the neighbouring region where that lowers the squared error of "
           "the colours; more than three add little", least=0, most=1000)
    features: Features = option(
        "paper", "Colour features that regions are compared by, see superpixel_features")
    similarity: Similarity = option(
        "cosine", "Similarity of two regions: cosine; euclidean, minus the distance; variance, minus the growth of the "
                  "squared error when they join")
    self_loop: SelfLoop = option(
        "clipped", "Weight of staying alone, (size - mean) / std of the level's region sizes: clipped to ±0.75; paper, "
                   "not clipped (about 1.8 times the regions); none")
    method: Method = option(
        "paper", "How regions are joined: paper, levels of contraction; tree, connected Ward clustering cut at exactly "
                 "max_tokens regions (default: one for every 256 pixels), which reads compactness, refine and, for a "
                 "hierarchy, levels", flag="superpixel_method")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method == "paper" and self.compactness > 1:
            raise ValueError(f"expected compactness of at most 1, got {self.compactness}; method='tree' takes more")

    def tree_count(self, pixels: int) -> int:
        """The number of regions that the tree of an image is cut into: max_tokens, or one for every 256 pixels."""
        return min(max(pixels // 256, 1) if self.max_tokens is None else self.max_tokens, pixels)

    def rules(self) -> Rules:
        """The options as kernels take them."""
        # Kernels are compiled for floats; an option may be an int.
        return Rules(self.levels, self.similarity, _LOOP_CLIPS[self.self_loop], float(self.compactness),
                     float(self.merge_threshold), self.max_tokens)


def compact_options(patch: int) -> dict[str, Any]:
    """Options of superpixels that weights of square patches know best: compact, and about as large as a patch."""
    return {"levels": max(1, round(math.log2(patch))), "compactness": 0.95, "self_loop": "none"}


@dataclass(frozen=True)
class FeatureOptions(Options):
    """The options of φ, shared by :class:`FeatureExtractor` and :class:`spit.ModelConfig`."""

    channels: int = option(3, "Channels C of the images", least=1, most=1024)
    resolution: int = option(16, "Side K of the colour patches, the paper's β", least=1, most=1024)
    position_bins: int = option(16, "Side K of the position histogram", least=1, most=1024)
    position_sigma: float = option(0.025, "Bandwidth of the position histogram; 0 is the empirical histogram", least=0,
                                   below=math.inf)
    gradients: bool = option(True, "Whether tokens have gradient histograms")
    gradient_bins: int = option(16, "Side K of the gradient histogram", least=1, most=1024)
    gradient_sigma: float = option(0.025, "Bandwidth of the gradient histogram; 0 is the empirical histogram", least=0,
                                   below=math.inf)
    gradient_contrast: float = option(
        0.0, "Factor λ of the contrast asinh(λx) / asinh(λ) of gradients (the release: 27.8); 0 leaves them as they "
             "are", least=0, below=math.inf)
    normalization: str = option(
        "contrast", "Colours: contrast (App. B, in [-1, 1]), imagenet (mean and std, for timm's weights) or none",
        choices=NORMALIZATIONS)
    fill: str = option(
        "zero", "What a colour patch has outside its region: zero (the paper), mean (the region's mean colour), "
                "image (what is there, in the smallest square around the region, as a ViT sees squares), or crop (what "
                "is there, around its centroid and not scaled; with position_sigma=0 the position is read there too)",
        choices=FILLS)
