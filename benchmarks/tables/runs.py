"""Intervals over runs, and over pairs of answers: Tables G1, 4 and B2."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from statistics import fmean
from typing import Any

from spit.evaluation.classification import Classification, Row
from spit.evaluation.intervals import Score, mean, scipy_stats
from spit.evaluation.runner import Runner
from spit.predictor import Predictor


class OverRuns(Classification):
    """Classification with Student's interval over the runs of a model whose tokens are random, as in Table G1."""

    def about(self) -> dict[str, Any]:
        return {**super().about(), "interval": "Student over several runs, else Wilson, 95 %"}

    def rows_of(self, predictor: Predictor, runner: Runner) -> list[Row]:
        return [replace(row, top1=over_runs(row.top1, row.runs), top5=row.top5 and over_runs(row.top5, row.runs),
                        real=row.real and over_runs(row.real, row.runs)) for row in super().rows_of(predictor, runner)]

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


def difference(runs: Sequence[Sequence[float]], base: Sequence[Sequence[float]]) -> Score:
    """How much better one answers than the other on the same images, with a normal interval of the pairs.

    Pairing removes what makes an image hard for both: the interval is narrower than that of either share.
    """
    return mean([fmean(ours) - fmean(theirs)
                 for ours, theirs in zip(zip(*runs, strict=True), zip(*base, strict=True), strict=True)])
