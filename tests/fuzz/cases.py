"""How many cases a fuzz test tries: a fixed number in ``make test``, ``SPIT_FUZZ`` times as many in ``make fuzz``."""

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

LONGER = int(os.environ.get("SPIT_FUZZ", "1"))


def cases(count: int) -> Callable[[Any], Any]:
    """Run a test with so many examples, the same ones each time, or with new ones in the long mode."""
    return settings(max_examples=count * LONGER, deadline=None, derandomize=LONGER == 1, database=None,
                    suppress_health_check=list(HealthCheck))
