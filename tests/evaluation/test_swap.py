from collections.abc import Callable
from pathlib import Path

import pytest

from spit.evaluation.answers import Examiner, Setup, Subject
from spit.evaluation.classification import evaluate as classify
from spit.evaluation.labelled import labelled_folder
from spit.evaluation.swap import PAPER, TOKENIZERS, evaluate, sheet


def test_every_tokenizer_on_every_model(subject: Callable[..., Subject], labelled: Path) -> None:
    folder = labelled_folder(labelled).spread(6)
    subjects = [subject("superpixel", levels=2), subject("patch", size=8)]
    steps: list[tuple[int, int]] = []
    with Examiner(Setup(32, 8), None, lambda _, done, total: steps.append((done, total))) as examiner:
        cells = evaluate(examiner, subjects, folder)
        own = classify(examiner, subjects, folder)
    assert (84, 84) in steps  # 2 models, 7 runs, 6 images
    assert [(cell.model, cell.tokenizer) for cell in cells] == [
        (name, kind) for name in ("small-superpixel", "small-patch") for kind in TOKENIZERS]
    assert [cell.own for cell in cells] == [False, False, True, True, False, False]
    assert (cells[2].top1, cells[3].top1) == (own[0].top1, own[1].top1)  # its own options are kept
    assert cells[3].tokens == 16
    for cell in cells:
        assert (cell.change is None) == cell.own
        assert (cell.top1.spread is not None) == (cell.tokenizer == "voronoi")
        base = cells[2] if cell.model == "small-superpixel" else cells[3]
        if cell.change is not None:
            assert cell.change.value == pytest.approx(cell.top1.value - base.top1.value)
    assert [cell.paper for cell in cells] == [*PAPER["superpixel", True], *PAPER["patch", True]]


def test_a_row_for_each_model(subject: Callable[..., Subject], labelled: Path) -> None:
    with Examiner(Setup(32, 8)) as examiner:
        made = sheet(evaluate(examiner, [subject()], labelled_folder(labelled).spread(3)), "about")
    [row] = made.cells
    assert row[:2] == ["small-superpixel", "yes"]
    assert "paper -0.200" in row[2]
    assert "(own)" in row[4]
