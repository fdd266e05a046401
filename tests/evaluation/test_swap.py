from collections.abc import Callable
from pathlib import Path

import pytest

from spit.evaluation.classification import Classification
from spit.evaluation.runner import Runner
from spit.evaluation.samples import labelled_folder
from spit.evaluation.swap import PAPER, TOKENIZERS, Swap
from spit.predictor import Predictor


def test_every_tokenizer_on_every_model(predictor: Callable[..., Predictor], labelled: Path) -> None:
    folder = labelled_folder(labelled).spread(6)
    predictors = [predictor("superpixel", levels=2), predictor("patch", size=8)]
    steps: list[tuple[int, int]] = []
    with Runner(None, lambda _, done, total: steps.append((done, total))) as runner:
        cells = runner.rows(Swap(predictors, folder))
        own = runner.rows(Classification(predictors, folder))
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


def test_a_row_for_each_model(predictor: Callable[..., Predictor], labelled: Path) -> None:
    with Runner() as runner:
        report = runner.evaluate(Swap([predictor()], labelled_folder(labelled).spread(3)))
    [row] = report.sheets[0].cells
    assert row[:2] == ["small-superpixel", "yes"]
    assert "paper -0.200" in row[2]
    assert "(own)" in row[4]
