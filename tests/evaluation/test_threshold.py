from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from spit.evaluation.runner import Runner
from spit.evaluation.samples import labelled_folder
from spit.evaluation.threshold import PAPER, Threshold, Thresholds, threshold_of_share
from spit.predictor import Predictor
from spit.tokenizers import SuperpixelTokenizer


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


def test_equal_shares(predictor: Callable[..., Predictor], labelled: Path) -> None:
    test = labelled_folder(labelled).spread(6)
    with Runner() as runner:
        rows = runner.rows(Threshold([predictor(levels=2)], test, Thresholds((0.0, 0.1, 0.2), equal_shares=True)))
    assert [row.paper for row in rows[:3]] == [PAPER[0.0], PAPER[0.1], PAPER[0.2]]
    assert (rows[0].threshold, rows[0].share) == (0.0, 1.0)
    for row, value in zip(rows[1:3], (0.1, 0.2), strict=True):
        assert row.share == pytest.approx(PAPER[value][0] / PAPER[0.0][0], abs=0.03)
        assert row.share == pytest.approx(row.tokens / rows[0].tokens)
    assert rows[1].threshold < rows[2].threshold
    with pytest.raises(ValueError, match=r"thresholds among 0.0, 0.05, 0.1, 0.15, 0.2, whose shares .*, got 0.3"):
        Thresholds((0.3,), equal_shares=True)


def test_the_threshold_of_a_share(photo: Callable[[str, int], Tensor]) -> None:
    images = torch.stack([photo("coffee", 64), photo("chelsea", 64)])
    for tokenizer in (SuperpixelTokenizer(levels=3), SuperpixelTokenizer(levels=3, preset="published")):
        assert threshold_of_share(tokenizer, images, 1.0) == 0.0
        found = threshold_of_share(tokenizer, images, 0.5)
        counts = [int(tokenizer.replace(merge_threshold=value)(images).counts.sum()) for value in (0.0, found)]
        assert counts[1] == pytest.approx(0.5 * counts[0], abs=2)


def test_one_threshold_is_its_own_best(predictor: Callable[..., Predictor], labelled: Path) -> None:
    with Runner() as runner:
        [row] = runner.rows(Threshold([predictor()], labelled_folder(labelled).spread(3), Thresholds((0.3,))))
    assert (row.threshold, row.paper) == (0.3, None)
    with pytest.raises(ValueError, match="got none"):
        Threshold([predictor()], labelled_folder(labelled), Thresholds(()))
    with pytest.raises(ValueError, match="thresholds of at least 0"):
        Thresholds((-1.0,))
