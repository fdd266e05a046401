"""What a share of right answers is worth: 95 % confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean, stdev

Z = 1.959963984540054  # 95 % of a normal distribution lie within ± this many deviations


@dataclass(frozen=True)
class Score:
    """A figure with its interval.

    Attributes:
        value: the mean over the images, and over the runs where there are several.
        low, high: the 95 % interval that ``images`` images leave.
        images: how many were counted.
        spread: the standard deviation of the figure over the runs; None where there was one.
    """

    value: float
    low: float
    high: float
    images: int
    spread: float | None = None

    def __str__(self) -> str:
        spread = "" if self.spread is None else f" ± {self.spread:.4f}"
        return f"{self.value:.4f}{spread} ({self.low:.4f} to {self.high:.4f})"


def wilson(right: float, images: int) -> tuple[float, float]:
    """The 95 % interval of a proportion (Wilson, 1927): right also where it is near 0 or 1.

    ``(p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n)`` with ``p = right / images``.

    Args:
        right: how many; a mean of several runs need not be whole.

    Raises:
        ValueError: no images, or more right than there are.
    """
    if images < 1 or not 0 <= right <= images:
        raise ValueError(f"expected 0 ≤ right ≤ images and an image at least, got {right} of {images}")
    share, square = right / images, Z * Z
    middle = share + square / (2 * images)
    half = Z * sqrt(share * (1 - share) / images + square / (4 * images * images))
    scale = 1 + square / images
    # At the ends the interval touches 0 or 1 exactly; rounding would leave 1e-18 of it.
    low = 0.0 if right == 0 else (middle - half) / scale
    high = 1.0 if right == images else (middle + half) / scale
    return low, high


def proportion(runs: Sequence[Sequence[float]]) -> Score:
    """The share of right answers, with Wilson's interval.

    Several runs see the same images, so the interval is that of their mean on the images of one run: more
    runs tell nothing about other images.

    Args:
        runs: for each run, 1 or 0 for each image.
    """
    shares = [fmean(run) for run in runs]
    images, value = len(runs[0]), fmean(shares)
    return Score(value, *wilson(value * images, images), images, stdev(shares) if len(shares) > 1 else None)


def mean(values: Sequence[float]) -> Score:
    """A mean with its normal interval, ``± z s/√n``; no width where there is but one value."""
    value = fmean(values)
    half = Z * stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
    return Score(value, value - half, value + half, len(values))


def share(values: Sequence[float]) -> Score:
    """As :func:`mean`, of values from 0 to 1, which the interval does not leave."""
    score = mean(values)
    return replace(score, low=max(score.low, 0.0), high=min(score.high, 1.0))


def difference(runs: Sequence[Sequence[float]], base: Sequence[Sequence[float]]) -> Score:
    """How much better one answers than the other on the same images, with a normal interval of the pairs.

    Pairing takes out what makes an image hard for both, so that the interval is narrower than two of
    :func:`proportion`'s suggest.
    """
    return mean([fmean(ours) - fmean(theirs)
                 for ours, theirs in zip(zip(*runs, strict=True), zip(*base, strict=True), strict=True)])
