from collections.abc import Callable
from pathlib import Path

import pytest

from spit.evaluation.answers import Examiner, Setup, Subject
from spit.evaluation.labelled import labelled_folder
from spit.evaluation.threshold import PAPER, evaluate, sheet


def test_fewer_tokens_as_the_threshold_rises(subject: Callable[..., Subject], labelled: Path) -> None:
    with Examiner(Setup(32, 8)) as examiner:
        rows = evaluate(examiner, [subject(levels=2)], labelled_folder(labelled).spread(6))
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
    markdown = sheet(rows, "about").markdown()
    assert "| best of all |" in markdown
    assert "| 0.15 |" in markdown


def test_one_threshold_is_its_own_best(subject: Callable[..., Subject], labelled: Path) -> None:
    with Examiner(Setup(32, 8)) as examiner:
        [row] = evaluate(examiner, [subject()], labelled_folder(labelled).spread(3), [0.3])
        assert (row.threshold, row.paper) == (0.3, None)
        for bad, told in (([], "got none"), ([-1.0], "merge_threshold of 0 or more")):
            with pytest.raises(ValueError, match=told):
                evaluate(examiner, [subject()], labelled_folder(labelled), bad)
