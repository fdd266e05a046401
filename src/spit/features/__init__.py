"""φ: image and partition to one feature vector a region (§2.3)."""

from spit.features.extractor import FeatureExtractor
from spit.kernels.options import FeatureOptions
from spit.parts import FEATURES

__all__ = ["FEATURES", "FeatureExtractor", "FeatureOptions"]

FEATURES.register("interpolating", FeatureExtractor)
