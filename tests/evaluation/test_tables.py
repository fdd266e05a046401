"""The paper's own protocols, of benchmarks/tables."""

from collections.abc import Callable
from importlib import import_module
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from spit.evaluation.classification import Classification
from spit.evaluation.intervals import Z, proportion
from spit.evaluation.runner import Runner
from spit.evaluation.samples import labelled_folder
from spit.predictor import Predictor


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    return lambda name: import_module(f"tables.{name}")


def test_every_tokenizer_on_every_model(table: Callable[[str], Any], predictor: Callable[..., Predictor],
                                        labelled: Path) -> None:
    swap, folder = table("swap"), labelled_folder(labelled).spread(6)
    predictors = [predictor("superpixel", levels=2), predictor("patch", size=8)]
    steps: list[tuple[int, int]] = []
    with Runner(None, lambda _, done, total: steps.append((done, total))) as runner:
        report = runner.evaluate(swap.Swap(predictors, folder))
        own = runner.rows(Classification(predictors, folder))
    cells = report.rows
    assert (84, 84) in steps  # 2 models, 7 runs, 6 images
    assert [(cell.model, cell.tokenizer) for cell in cells] == [
        (name, kind) for name in ("small-superpixel", "small-patch") for kind in swap.TOKENIZERS]
    assert [cell.own for cell in cells] == [False, False, True, True, False, False]
    assert (cells[2].top1, cells[3].top1) == (own[0].top1, own[1].top1)  # its own options are kept
    assert cells[3].tokens == 16
    for cell in cells:
        assert (cell.change is None) == cell.own
        assert (cell.top1.spread is not None) == (cell.tokenizer == "voronoi")
        base = cells[2] if cell.model == "small-superpixel" else cells[3]
        if cell.change is not None:
            assert cell.change.value == pytest.approx(cell.top1.value - base.top1.value)
    assert [cell.paper for cell in cells] == [*swap.PAPER["superpixel", True], *swap.PAPER["patch", True]]
    row, _ = report.sheets[0].cells
    assert row[:2] == ["small-superpixel", "yes"]
    assert ("paper -0.200" in row[2], "(own)" in row[4]) == (True, True)


def test_the_interval_of_table_g1_is_over_the_runs(table: Callable[[str], Any], predictor: Callable[..., Predictor],
                                                   labelled: Path) -> None:
    folder, model = labelled_folder(labelled).spread(6), predictor("voronoi", cells=6)
    with Runner() as runner:
        usual, paper = (runner.evaluate(protocol([model], folder))
                        for protocol in (Classification, table("runs").OverRuns))
    assert ("Student" in usual.notes, "Student" in paper.notes) == (False, True)
    [one], [other] = usual.rows, paper.rows
    assert (other.top1.value, other.top1.spread) == (one.top1.value, one.top1.spread)
    assert other.top1.high - other.top1.value == pytest.approx(
        min(2.7764451 * one.top1.spread / 5**0.5, 1 - one.top1.value))


def test_an_interval_over_runs(table: Callable[[str], Any]) -> None:
    """Shares .75, .5 and .25: mean .5, deviation .25, and Student's t of 2 degrees of freedom, 4.3027, over √3."""
    over_runs, runs = table("runs").over_runs, [[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 0]]
    score = over_runs(proportion(runs), 3)
    assert (score.value, score.spread, score.images) == (0.5, 0.25, 4)
    assert (score.low, score.high) == (0.0, 1.0)  # ± .62 is cut to shares
    close = over_runs(proportion([run * 50 + [1, 0] * 400 for run in runs]), 3)  # .55, .5 and .45
    assert close.high - close.value == pytest.approx(4.302653 * 0.05 / sqrt(3))
    assert over_runs(proportion(runs[:1]), 1) == proportion(runs[:1])


def test_a_difference_is_paired(table: Callable[[str], Any]) -> None:
    difference, ours, base = table("runs").difference, [[1, 1, 0, 1]], [[1, 0, 0, 1]]
    assert difference(ours, base).value == 0.25
    assert difference(ours, base).high - 0.25 == pytest.approx(Z * 0.5 / 2)  # 0, 1, 0, 0 deviate by 1/2
    same = difference(base, base)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert difference([[1, 0], [0, 0]], [[0, 0]]).value == 0.25
