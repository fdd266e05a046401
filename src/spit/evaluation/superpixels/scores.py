"""Every metric of one image's regions, against every human segmentation of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from spit.evaluation.superpixels.boundaries import boundary_pixels, recall, tolerance, widen
from spit.evaluation.superpixels.overlap import achievable_accuracy, undersegmentation_error
from spit.evaluation.superpixels.regions import connected_regions
from spit.evaluation.superpixels.shape import compactness
from spit.evaluation.superpixels.variation import explained_variation


@dataclass(frozen=True)
class Scores:
    """The figures of one partition of one image; against truths, the mean over them.

    Attributes:
        regions: 4-connected regions; all other figures are of these.
        labels: different labels, before they were split into connected regions.
    """

    regions: int
    labels: int
    explained_variation: float
    achievable_accuracy: float
    undersegmentation_error: float
    boundary_recall: float
    compactness: float


def score(image: ArrayLike | Tensor, labels: ArrayLike | Tensor, truths: Sequence[ArrayLike | Tensor]) -> Scores:
    """All metrics, after each label was split into its 4-connected regions.

    Shape:
        image ``(H, W, 3)``, or a tensor ``(3, H, W)``; labels and each truth ``(H, W)``.
    """
    if len(truths) == 0:
        raise ValueError("expected one truth or more, got none")
    regions = connected_regions(labels)
    found = widen(boundary_pixels(regions), tolerance(regions.shape))
    return Scores(
        regions=int(regions.max()) + 1,
        labels=len(np.unique(labels.cpu().numpy() if isinstance(labels, Tensor) else labels)),
        explained_variation=explained_variation(image, regions),
        achievable_accuracy=fmean(achievable_accuracy(regions, truth) for truth in truths),
        undersegmentation_error=fmean(undersegmentation_error(regions, truth) for truth in truths),
        boundary_recall=fmean(recall(found, boundary_pixels(truth)) for truth in truths),
        compactness=compactness(regions),
    )
