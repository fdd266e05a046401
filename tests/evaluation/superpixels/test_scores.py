from statistics import fmean

import numpy as np
import pytest
import torch

from spit.evaluation.superpixels import (
    achievable_accuracy,
    boundary_recall,
    compactness,
    explained_variation,
    score,
    undersegmentation_error,
)
from spit.evaluation.superpixels.regions import connected_regions


def test_every_metric_is_of_the_connected_regions_and_a_mean_over_truths(photo_pixels: np.ndarray) -> None:
    grey = photo_pixels.mean(axis=2)
    labels = (grey // 40).astype(int)
    truths = [(grey > 100).astype(int), (grey > 150).astype(int) * 7]
    scores, regions = score(photo_pixels, labels, truths), connected_regions(labels)
    assert scores.regions == regions.max() + 1 > scores.labels == len(np.unique(labels))
    assert scores.explained_variation == explained_variation(photo_pixels, regions)
    assert scores.achievable_accuracy == fmean(achievable_accuracy(regions, truth) for truth in truths)
    assert scores.undersegmentation_error == fmean(undersegmentation_error(regions, truth) for truth in truths)
    assert scores.boundary_recall == fmean(boundary_recall(regions, truth) for truth in truths)
    assert scores.compactness == compactness(regions)
    assert score(torch.from_numpy(photo_pixels).movedim(-1, 0), torch.from_numpy(labels), truths) == scores


def test_pixels_are_perfect(photo_pixels: np.ndarray) -> None:
    pixels = np.arange(photo_pixels[:, :, 0].size).reshape(photo_pixels.shape[:2])
    scores = score(photo_pixels, pixels, [pixels // 50])
    assert (scores.achievable_accuracy, scores.undersegmentation_error, scores.boundary_recall) == (1, 0, 1)
    assert scores.explained_variation == pytest.approx(1)
    assert scores.regions == scores.labels


def test_a_truth_is_needed(photo_pixels: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected one truth or more"):
        score(photo_pixels, np.zeros((60, 90), int), [])
