import torch

from spit.bench.timing import median_ms, peak_gib

CPU = torch.device("cpu")


def test_warm_up_is_called_and_not_counted() -> None:
    calls: list[int] = []
    assert median_ms(lambda: calls.append(0), CPU, rounds=5, warm_up=2) >= 0
    assert len(calls) == 7


def test_no_peak_on_a_cpu() -> None:
    assert peak_gib(lambda: None, CPU) is None
