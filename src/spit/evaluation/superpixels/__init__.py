"""Superpixels against human segmentations: metrics, other methods, and a comparison at equal counts."""

from spit.evaluation.superpixels.boundaries import boundary_recall
from spit.evaluation.superpixels.comparison import Comparing, Comparison
from spit.evaluation.superpixels.data import find_samples
from spit.evaluation.superpixels.methods import METHODS, Method, choose_methods
from spit.evaluation.superpixels.overlap import achievable_accuracy, undersegmentation_error
from spit.evaluation.superpixels.regions import count_regions
from spit.evaluation.superpixels.scores import Scores, score
from spit.evaluation.superpixels.shape import compactness
from spit.evaluation.superpixels.summary import Row
from spit.evaluation.superpixels.variation import explained_variation

__all__ = [
    "METHODS",
    "Comparing",
    "Comparison",
    "Method",
    "Row",
    "Scores",
    "achievable_accuracy",
    "boundary_recall",
    "choose_methods",
    "compactness",
    "count_regions",
    "explained_variation",
    "find_samples",
    "score",
    "undersegmentation_error",
]
