import os
import signal
from typing import Any

import pytest

from spit.errors import SpitError
from spit.evaluation.superpixels.workers import open_workers


def die(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_is_one_line() -> None:
    with pytest.raises(SpitError, match="a worker process ended before its work was done"), open_workers(1) as workers:
        list(workers(die, [1]))
