"""Medians of repeated calls, timed by device events on CUDA and by the clock elsewhere."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch


def median_ms(function: Callable[[], Any], device: torch.device, rounds: int = 20, warm_up: int = 3) -> float:
    """Milliseconds of one call: the median of ``rounds`` after ``warm_up`` calls that are not counted."""
    return median([_once(function, device) for _ in range(warm_up + rounds)][warm_up:])


def peak_gib(function: Callable[[], Any], device: torch.device) -> float | None:
    """Peak memory of tensors while the function ran; None on a CPU."""
    if device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats(device)
    function()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) / 2**30


def _once(function: Callable[[], Any], device: torch.device) -> float:
    if device.type != "cuda":
        start = time.perf_counter()
        function()
        return 1000 * (time.perf_counter() - start)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    function()
    end.record()
    torch.cuda.synchronize(device)
    return float(begin.elapsed_time(end))
