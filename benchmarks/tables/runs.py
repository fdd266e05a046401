"""Intervals over runs: Table G1."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Any

from spit.evaluation.classification import Classification, Row
from spit.evaluation.intervals import Score, scipy_stats
from spit.evaluation.runner import Runner
from spit.evaluation.tokenizers import Variant


class OverRuns(Classification):
    """Classification with Student's interval over the runs of a model whose tokens are random, as in Table G1."""

    def about(self) -> dict[str, Any]:
        return {**super().about(), "interval": "Student over several runs, else Wilson, 95 %"}

    def rows_of(self, variants: Sequence[Variant], runner: Runner) -> list[Row]:
        return [replace(row, top1=over_runs(row.top1, row.runs), top5=row.top5 and over_runs(row.top5, row.runs),
                        real=row.real and over_runs(row.real, row.runs)) for row in super().rows_of(variants, runner)]

    def notes_for(self, rows: Sequence[Row]) -> str:
        notes = super().notes_for(rows)
        return f"{notes} The interval is Student's over those runs." if any(row.runs > 1 for row in rows) else notes


def over_runs(score: Score, runs: int) -> Score:
    """A share with Student's interval over its runs, ``± t s/√n``; of one run it stays as it is.

    It says how much other runs on the same images would differ, and nothing about other images.
    """
    if score.spread is None:
        return score
    half = float(scipy_stats().t.ppf(0.975, runs - 1)) * score.spread / sqrt(runs)
    return replace(score, low=max(score.value - half, 0.0), high=min(score.value + half, 1.0))
