"""Superpixels against human segmentations: metrics, other methods, and a comparison at equal counts."""

from spit.evaluation.superpixels.comparison import Comparing, Comparison
from spit.evaluation.superpixels.data import find_samples
from spit.evaluation.superpixels.methods import METHODS, Method, choose_methods
from spit.evaluation.superpixels.metrics import (
    achievable_accuracy,
    boundary_recall,
    compactness,
    count_regions,
    explained_variation,
    score,
    undersegmentation_error,
)
from spit.evaluation.superpixels.summary import Row

__all__ = ["METHODS", "Comparing", "Comparison", "Method", "Row", "achievable_accuracy", "boundary_recall",
           "choose_methods", "compactness", "count_regions", "explained_variation", "find_samples", "score",
           "undersegmentation_error"]
