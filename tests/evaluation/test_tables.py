"""The paper's own protocols, of benchmarks/tables."""

from collections.abc import Callable
from importlib import import_module
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from spit.evaluation.classification import Classification
from spit.evaluation.intervals import proportion
from spit.evaluation.runner import Runner
from spit.evaluation.samples import labelled_folder
from spit.evaluation.swap import Swap
from spit.predictor import Predictor


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    return lambda name: import_module(f"tables.{name}")


def test_table_4_has_the_papers_changes(table: Callable[[str], Any], predictor: Callable[..., Predictor],
                                        labelled: Path) -> None:
    """A row for each model, the figures of the verb, and the paper's for a model of this kind."""
    folder, paper = labelled_folder(labelled).spread(6), table("swap").PAPER
    predictors = [predictor("superpixel", levels=2), predictor("patch", size=8)]
    with Runner() as runner:
        report = runner.evaluate(table("swap").Swap(predictors, folder))
        verb = runner.rows(Swap(predictors, folder))
    assert [row.paper for row in report.rows] == [*paper["superpixel", True], *paper["patch", True]]
    assert [(row.model, row.tokenizer, row.own, row.top1, row.change) for row in report.rows] == [
        (row.model, row.tokenizer, row.own, row.top1, row.change) for row in verb]
    row, other = report.sheets[0].cells
    assert (row[:2], other[0]) == (["small-superpixel", "yes"], "small-patch")
    assert ("paper -0.200" in row[2], "(own)" in row[4], "(own)" in other[2]) == (True, True, True)


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
