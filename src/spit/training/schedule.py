"""The learning rate of a step (App. C): a cosine up, a cosine down."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """``start → most`` over the warm-up, then ``most → least`` over the rest, each along half a cosine.

    Args:
        start, most, least: learning rates.
        warmup: steps of the first part.
        total: steps of both.
    """

    start: float
    most: float
    least: float
    warmup: int
    total: int

    def __call__(self, step: int) -> float:
        """The learning rate of a step, from 0 to ``total − 1``."""
        if step < self.warmup:
            return _between(self.start, self.most, step / self.warmup)
        return _between(self.most, self.least, (step - self.warmup) / max(self.total - self.warmup, 1))


def _between(first: float, last: float, share: float) -> float:
    return last + (first - last) * (1 + math.cos(math.pi * min(share, 1.0))) / 2
