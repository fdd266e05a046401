"""Masks and correspondences from tokens, without a decoder or pixel post-processing (§3.2, App. E and F)."""

from spit.segmentation.cleaning import clean, decide
from spit.segmentation.correspondence import Correspondence, correspond
from spit.segmentation.graph import RegionGraph
from spit.segmentation.head import TokenHead, load_head
from spit.segmentation.normalized_cut import normalized_cut
from spit.segmentation.saliency import Cut, Segmentation, looking, segment, segment_images, segment_prediction

__all__ = [
    "Correspondence", "Cut", "RegionGraph", "Segmentation", "TokenHead", "clean", "correspond", "decide", "load_head",
    "looking", "normalized_cut", "segment", "segment_images", "segment_prediction",
]
