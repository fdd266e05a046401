"""F, IoU and accuracy on cases worked out by hand."""

import numpy as np
import pytest

from spit.evaluation.saliency_data import Truth
from spit.evaluation.saliency_metrics import PAPER_BETA2, best_threshold, f_measure, score

TRUTH = Truth(np.array([[True, True, False, False]]), np.ones((1, 4), dtype=bool))


def test_a_hand_worked_image() -> None:
    """One hit, one miss, one false alarm: IoU 1/3, accuracy 1/2; P = R = F = 1/2 at the mask's threshold."""
    soft = np.array([[1.0, 0.2, 0.6, 0.0]], dtype=np.float32)
    scores = score(soft, soft > 0.5, TRUTH)
    assert (scores.iou, scores.accuracy, scores.foreground) == (1 / 3, 0.5, 2)
    f = scores.f_measure()
    assert f[127] == pytest.approx(0.5)  # threshold .5: two positives, one hit
    assert f[0] == pytest.approx(1.3 * 0.5 * 1 / (0.3 * 0.5 + 1))  # all positive: P = 1/2, R = 1
    assert f[254] == pytest.approx(1.3 * 1 * 0.5 / (0.3 * 1 + 0.5))  # only the first: P = 1, R = 1/2
    assert scores.f_measure(PAPER_BETA2)[254] == pytest.approx((10 / 9) * 0.5 / (1 / 9 + 0.5))
    assert (scores.positives[0], scores.positives[51], scores.positives[254]) == (4, 2, 1)  # .2 < 51/254


def test_perfect_empty_and_inverted() -> None:
    soft = TRUTH.foreground.astype(np.float32)
    perfect, inverted = score(soft, soft > 0.5, TRUTH), score(1 - soft, soft < 0.5, TRUTH)
    assert (perfect.iou, perfect.accuracy, perfect.f_measure()[1:].min()) == (1, 1, pytest.approx(1))
    assert (inverted.iou, inverted.accuracy, inverted.f_measure()[1:].max()) == (0, 0, 0)
    nothing = score(np.zeros((1, 4), np.float32), np.zeros((1, 4), bool), TRUTH)
    assert (nothing.iou, nothing.accuracy, nothing.f_measure()[1]) == (0, 0.5, 0)


def test_pixels_that_do_not_count() -> None:
    truth = Truth(TRUTH.foreground, np.array([[True, False, False, True]]))
    soft = np.array([[0.9, 0.1, 0.9, 0.1]], dtype=np.float32)
    scores = score(soft, soft > 0.5, truth)
    assert (scores.iou, scores.accuracy, scores.foreground) == (1, 1, 1)


def test_the_mean_comes_before_the_maximum() -> None:
    first, second = np.array([0.9, 0.5, 0.0]), np.array([0.0, 0.5, 0.8])
    assert best_threshold([first, second]) == 1  # each alone has its own, better one


def test_f_without_a_hit_is_zero() -> None:
    assert f_measure(np.array([0, 3]), np.array([0, 0]), 0).tolist() == [0, 0]
