"""Figures with 95 % confidence intervals, and paired tests, by scipy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist, fmean, stdev
from typing import Any

from spit.evaluation.libraries import library

Z = NormalDist().inv_cdf(0.975)  # 95 % of a normal distribution lie within ± this many deviations


@dataclass(frozen=True)
class Score:
    """A mean over images, and over runs if there are several, with its 95 % interval.

    Attributes:
        images: how many were counted.
        spread: standard deviation over the runs; None for one run.
    """

    value: float
    low: float
    high: float
    images: int
    spread: float | None = None

    def __str__(self) -> str:
        spread = "" if self.spread is None else f" ± {self.spread:.4f}"
        return f"{self.value:.4f}{spread} ({self.low:.4f} to {self.high:.4f})"

    def signed(self) -> str:
        """A difference in words."""
        return f"{self.value:+.4f} ({self.low:+.4f} to {self.high:+.4f})"


@dataclass(frozen=True)
class TTest:
    """Whether one figure exceeds another on the same images; ``p`` is the chance of such a t without a difference."""

    t: float
    freedom: int
    p: float

    def __str__(self) -> str:
        return f"t = {self.t:.2f}, p " + (f"= {self.p:.2g}" if self.p >= 1e-10 else "< 1e-10")


def proportion(runs: Sequence[Sequence[float]]) -> Score:
    """The share of right answers, 1 or 0 for each run and image, with Wilson's interval.

    Several runs see the same images, so the interval is that of their mean on the images of one run, with the number
    of right answers rounded to a whole one.
    """
    shares = [fmean(run) for run in runs]
    images, value = len(runs[0]), fmean(shares)
    interval = scipy_stats().binomtest(round(value * images), images).proportion_ci(0.95, method="wilson")
    return Score(value, float(interval.low), float(interval.high), images, stdev(shares) if len(shares) > 1 else None)


def mean(values: Sequence[float]) -> Score:
    """A mean with its normal interval, ``± z s/√n``; of one value the interval has no width."""
    value = fmean(values)
    half = Z * stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
    return Score(value, value - half, value + half, len(values))


def share(values: Sequence[float]) -> Score:
    """:func:`mean` of values from 0 to 1, with the interval clipped to them."""
    score = mean(values)
    return replace(score, low=max(score.low, 0.0), high=min(score.high, 1.0))


def difference(runs: Sequence[Sequence[float]], base: Sequence[Sequence[float]]) -> Score:
    """How much better one answers than the other on the same images, with a normal interval of the pairs.

    Pairing removes what makes an image hard for both: the interval is narrower than that of either share. Each is
    given as runs, and a run as a value for each image.
    """
    return mean([fmean(ours) - fmean(theirs)
                 for ours, theirs in zip(zip(*runs, strict=True), zip(*base, strict=True), strict=True)])


def paired_ttest(values: Sequence[float], base: Sequence[float]) -> TTest | None:
    """Test ``values > base``, pair by pair (Table 2's footnote); None if there are no two different differences."""
    if len({ours - theirs for ours, theirs in zip(values, base, strict=True)}) < 2:
        return None
    found = scipy_stats().ttest_rel(values, base, alternative="greater")
    return TTest(float(found.statistic), int(found.df), float(found.pvalue))


def scipy_stats() -> Any:
    """The module ``scipy.stats``."""
    return library("scipy.stats", "an interval or a test")
