"""Which parameter gives the wanted number of regions."""

from collections.abc import Callable
from math import log

from spit.evaluation.superpixels.methods import Method

CLOSE = 0.04  # log error that is near enough on a few images; a second setting corrects the rest
MIXABLE = 0.25  # log error above the wanted count that is better than any below
TRIES = 7


def calibrate(method: Method, wanted: int, pixels: int, mean_count: Callable[[float], float],
              drift: float = 1.0) -> float:
    """The parameter whose mean count on a few images is closest to the one wanted.

    A search in log-log space, where counts are nearly straight lines: along the method's slope until the count is
    bracketed, then by the secant within the bracket. It ends within 4 %, or when no parameter is left between. If a
    method has no count near, the closest below is taken.

    Args:
        wanted: number of regions.
        pixels: of an image, about.
        mean_count: parameter → mean count of 4-connected regions.
        drift: factor on the method's own guess.
    """
    tried: dict[float, float] = {}
    parameter = method.near(drift * method.guess(wanted, pixels))
    while len(tried) < TRIES and parameter not in tried:
        tried[parameter] = log(mean_count(parameter) / wanted)
        if abs(tried[parameter]) <= CLOSE:
            return parameter
        parameter = method.near(_next(method, tried))
    close = [p for p in tried if abs(tried[p]) <= MIXABLE]
    below = [p for p in tried if tried[p] <= 0]
    return min(close or below or tried, key=lambda p: abs(tried[p]))


def _next(method: Method, tried: dict[float, float]) -> float:
    """The next parameter to try; values are log(count / wanted)."""
    above = min((p for p in tried if tried[p] > 0), key=lambda p: p * method.slope, default=None)
    below = max((p for p in tried if tried[p] <= 0), key=lambda p: p * method.slope, default=None)
    if above is not None and below is not None:
        share = -tried[below] / (tried[above] - tried[below])
        share = min(max(share, 0.15), 0.85)  # where counts jump, a secant would creep
        return float(below * (above / below) ** share)
    last = list(tried)[-1]
    stuck = len(set(tried.values())) < len(tried)  # the same count twice: a plateau
    return method.moved(last, -tried[last] * (3 if stuck else 1))
