from collections.abc import Callable
from pathlib import Path

import pytest

from spit.evaluation.runner import Runner
from spit.evaluation.samples import labelled_folder
from spit.evaluation.threshold import PAPER, Threshold, Thresholds
from spit.predictor import Predictor


def test_fewer_tokens_as_the_threshold_rises(predictor: Callable[..., Predictor], labelled: Path) -> None:
    with Runner() as runner:
        report = runner.evaluate(Threshold([predictor(levels=2)], labelled_folder(labelled).spread(6)))
    rows = report.rows
    assert [row.threshold for row in rows] == [*PAPER, None]
    tokens = [row.tokens for row in rows[:-1]]
    assert tokens == sorted(tokens, reverse=True)
    assert tokens[0] > tokens[-1]
    assert rows[0].change is None
    for row in rows[1:]:
        assert row.change.value == pytest.approx(row.top1.value - rows[0].top1.value)
    best = rows[-1]
    assert best.top1.value >= max(row.top1.value for row in rows[:-1])
    assert (best.tokens, best.paper) == (None, (None, None, 0.817))
    assert rows[2].paper == (441.6, 844.4, 0.802)
    markdown = report.markdown()
    assert "| best of all |" in markdown
    assert "| 0.15 |" in markdown


def test_one_threshold_is_its_own_best(predictor: Callable[..., Predictor], labelled: Path) -> None:
    with Runner() as runner:
        [row] = runner.rows(Threshold([predictor()], labelled_folder(labelled).spread(3), Thresholds((0.3,))))
    assert (row.threshold, row.paper) == (0.3, None)
    with pytest.raises(ValueError, match="got none"):
        Threshold([predictor()], labelled_folder(labelled), Thresholds(()))
    with pytest.raises(ValueError, match="thresholds of at least 0"):
        Thresholds((-1.0,))
