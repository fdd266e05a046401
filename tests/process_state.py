"""What a process has that a call of a library could change beyond its answer."""

import os
import random
import signal
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch


def process_state() -> dict[str, Any]:
    """Environment, children, threads, warning filters, signal handlers, random states, torch's settings, paths."""
    children = [int(child) for path in Path("/proc/self/task").glob("*/children") for child in path.read_text().split()]
    return {
        "environment": dict(os.environ),
        "child processes": sorted(children),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "warning filters": [*warnings.filters],
        "signal handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "Python's random state": random.getstate(),
        "numpy's random state": str(np.random.get_state()),
        "torch's random state": torch.get_rng_state().tolist(),
        "torch's threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "torch's modes": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()),
        "folder": os.getcwd(),
        "module path": [*sys.path],
    }


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names of what is not as it was."""
    return [name for name in before if before[name] != after[name]]


if __name__ == "__main__":  # in a fresh process: what importing spit changes beside what the packages it needs do
    import numba  # noqa: F401
    import safetensors.torch  # noqa: F401

    first = process_state()
    from spit.public import *  # noqa: F403

    print(changes(first, process_state()))
