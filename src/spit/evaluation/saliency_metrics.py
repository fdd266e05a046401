"""How well a soft map finds a mask: maximal F, intersection over union, accuracy (§3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spit.evaluation.saliency_data import Truth

THRESHOLDS = 255
BETA2 = 0.3  # TokenCut's and the field's
PAPER_BETA2 = 1 / 9  # β = 1/3, as the paper writes it

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """One image's figures.

    Attributes:
        iou: of the mask, ``|M ∩ G| / |M ∪ G|``.
        accuracy: the share of pixels where mask and truth agree.
        positives, hits: pixels at or above each threshold, and those of them in the foreground.
        foreground: pixels of the truth's foreground.

    Shape:
        positives and hits ``(255,)``.
    """

    iou: float
    accuracy: float
    positives: Counts
    hits: Counts
    foreground: int

    def f_measure(self, beta2: float = BETA2) -> NDArray[np.float64]:
        """F at each threshold, ``(255,)``; see :func:`f_measure`."""
        return f_measure(self.positives, self.hits, self.foreground, beta2)


def score(saliency: NDArray[np.float32], mask: NDArray[np.bool_], truth: Truth) -> Scores:
    """Compare a soft map and a mask with the truth, on the pixels that count.

    Threshold k is ``k / 254``, and what lies at or above it is positive: all pixels at the first.

    Shape:
        saliency ``(H, W)`` in [0, 1], mask ``(H, W)``.
    """
    soft, chosen, wanted = saliency[truth.counted], mask[truth.counted], truth.foreground[truth.counted]
    either = int((chosen | wanted).sum())
    place = np.searchsorted(np.linspace(0, 1, THRESHOLDS), soft, side="right") - 1
    positives, hits = (np.bincount(places, minlength=THRESHOLDS)[::-1].cumsum()[::-1]
                       for places in (place, place[wanted]))
    return Scores(iou=int((chosen & wanted).sum()) / either if either else 1.0,
                  accuracy=float((chosen == wanted).mean()) if len(chosen) else 1.0,
                  positives=positives, hits=hits, foreground=int(wanted.sum()))


def f_measure(positives: Counts, hits: Counts, foreground: int, beta2: float = BETA2) -> NDArray[np.float64]:
    """``F = (1 + β²) P R / (β² P + R) = (1 + β²) TP / (TP + FP + β² (TP + FN))``; 0 without a hit.

    Shape:
        positives and hits ``(255,)`` to ``(255,)``.
    """
    f: NDArray[np.float64] = np.zeros(len(hits))
    np.divide((1 + beta2) * hits, positives + beta2 * foreground, out=f, where=hits > 0)
    return f


def best_threshold(curves: Sequence[NDArray[np.float64]]) -> int:
    """The index of the threshold at which the mean of F over images is largest; the first of equals."""
    return int(np.mean(curves, axis=0).argmax())
