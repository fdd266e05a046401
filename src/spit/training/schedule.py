"""The learning rate of a step (App. C): warm-up and decay, each along half a cosine.

This is our own because it is a function of the step alone; torch's schedulers have a state to save and restore.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """``start → most`` over ``warmup`` steps, then ``most → least`` over the rest of ``total`` steps."""

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
