"""A paired one-sided t-test, without scipy."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt
from statistics import fmean, stdev

CLOSE = 1e-15  # of the continued fraction
TERMS = 10_000
TINY = 1e-300


@dataclass(frozen=True)
class TTest:
    """Whether one figure exceeds another on the same images.

    Attributes:
        t: the mean difference over its standard error.
        freedom: images less one.
        p: the chance of such a t or a larger one where there is no difference.
    """

    t: float
    freedom: int
    p: float

    def __str__(self) -> str:
        return f"t = {self.t:.2f}, p " + (f"= {self.p:.2g}" if self.p >= 1e-10 else "< 1e-10")


def paired_ttest(values: Sequence[float], base: Sequence[float]) -> TTest | None:
    """Test ``values > base``, pair by pair (Table 2's footnote).

    None where there is nothing to test: fewer than two pairs, or differences that are all equal.
    """
    differences = [ours - theirs for ours, theirs in zip(values, base, strict=True)]
    spread = stdev(differences) if len(differences) > 1 else 0.0
    if spread == 0:
        return None
    t = fmean(differences) / (spread / sqrt(len(differences)))
    return TTest(t, len(differences) - 1, upper_tail(t, len(differences) - 1))


def upper_tail(t: float, freedom: float) -> float:
    """``P(T ≥ t)`` of Student's distribution: ``½ I_x(ν/2, ½)`` with ``x = ν / (ν + t²)``, for t ≥ 0.

    Near 0 by its complement, ``½ (1 − I_{1−x}(½, ν/2))``, where 1 − x would have lost its digits.
    """
    if t < 0:
        return 1 - upper_tail(-t, freedom)
    if t < 1:
        return 0.5 - 0.5 * incomplete_beta(t * t / (freedom + t * t), 0.5, freedom / 2)
    return 0.5 * incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function ``I_x(a, b)``, by its continued fraction (Lentz).

    The fraction converges fast for ``x < (a + 1) / (a + b + 2)``; beyond, ``I_x(a, b) = 1 − I_{1−x}(b, a)``.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, TERMS):
        for term in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < CLOSE:
            break
    return front * fraction


def _away_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
