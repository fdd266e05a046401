"""Masks and correspondences from tokens, without a decoder or pixel post-processing (§3.2, App. E and F)."""

from spit.segmentation.cleaning import clean, decide
from spit.segmentation.correspondence import Correspondence, correspond
from spit.segmentation.graph import RegionGraph
from spit.segmentation.normalized_cut import normalized_cut
from spit.segmentation.saliency import Cut, Segmentation, segment, segment_prediction

__all__ = [
    "Correspondence", "Cut", "RegionGraph", "Segmentation", "clean", "correspond", "decide", "normalized_cut",
    "segment", "segment_prediction",
]
