"""Superpixels against human segmentations: metrics, peers, and the run that compares them at equal counts."""

from spit.evaluation.superpixels.boundaries import boundary_pixels, boundary_recall
from spit.evaluation.superpixels.calibration import calibrate
from spit.evaluation.superpixels.data import Sample, find_samples, read_truths
from spit.evaluation.superpixels.methods import METHODS, Method, choose_methods
from spit.evaluation.superpixels.overlap import achievable_accuracy, undersegmentation_error
from spit.evaluation.superpixels.regions import connected_regions, count_regions, is_connected
from spit.evaluation.superpixels.run import evaluate
from spit.evaluation.superpixels.scores import Scores, score
from spit.evaluation.superpixels.shape import compactness
from spit.evaluation.superpixels.summary import Row
from spit.evaluation.superpixels.variation import explained_variation

__all__ = [
    "METHODS",
    "Method",
    "Row",
    "Sample",
    "Scores",
    "achievable_accuracy",
    "boundary_pixels",
    "boundary_recall",
    "calibrate",
    "choose_methods",
    "compactness",
    "connected_regions",
    "count_regions",
    "evaluate",
    "explained_variation",
    "find_samples",
    "is_connected",
    "read_truths",
    "score",
    "undersegmentation_error",
]
