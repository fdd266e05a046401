"""φ: image and partition to one feature vector a region (§2.3)."""

from spit.features.extractor import FeatureExtractor

__all__ = ["FeatureExtractor"]
