import pytest
import torch

from spit.training.distributed import Team
from spit.training.meter import Meter

GOOD, BAD = torch.tensor(1.0), torch.tensor(0.0)


def test_means_over_images_of_the_steps_that_were_taken() -> None:
    meter = Meter(Team(0, 1, torch.device("cpu")))
    meter.add({"loss": torch.tensor(1.0), "top1": torch.tensor(0.5)}, 2)
    meter.add({"loss": torch.tensor(4.0), "top1": torch.tensor(1.0)}, 6)
    meter.end_step(GOOD)
    meter.add({"loss": torch.tensor(float("nan")), "top1": torch.tensor(0.0)}, 8)
    meter.end_step(BAD)
    meter.add({"loss": torch.tensor(2.0), "top1": torch.tensor(0.0)}, 8)
    meter.end_step(GOOD)
    means, skipped, longest = meter.read()
    assert means == {"loss": pytest.approx((2 + 24 + 16) / 16), "top1": pytest.approx((1 + 6) / 16)}
    assert (skipped, longest) == (1, 1)
    assert meter.read() == ({}, 0, 0)


def test_a_row_goes_on_over_readings() -> None:
    meter = Meter(Team(0, 1, torch.device("cpu")))
    rows = []
    for good in (BAD, BAD, GOOD, BAD, BAD, BAD, GOOD, GOOD):
        meter.add({"loss": torch.tensor(1.0)}, 2)
        meter.end_step(good)
        rows.append(meter.read()[1:])
    assert rows == [(1, 1), (1, 2), (0, 2), (1, 1), (1, 2), (1, 3), (0, 3), (0, 0)]
