"""Masks and correspondences from tokens, without a decoder or post-processing (§3.2, App. E and F)."""

from spit.segmentation.correspondence import Correspondence, correspond
from spit.segmentation.normalized_cut import normalized_cut
from spit.segmentation.saliency import Cut, Segmentation, segment, segment_prediction

__all__ = [
    "Correspondence", "Cut", "Segmentation", "correspond", "normalized_cut", "segment", "segment_prediction",
]
