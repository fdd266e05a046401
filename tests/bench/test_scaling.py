import torch

from spit.bench import measure_scaling, scaling
from spit.bench.photos import sample_photos


def test_sizes_then_batches_up_to_the_largest(monkeypatch) -> None:
    monkeypatch.setattr(scaling, "SIDES", (16, 32, 64))
    monkeypatch.setattr(scaling, "SIDE", 16)
    monkeypatch.setattr(scaling, "BATCHES", (1, 2, 4, 8))
    cases = list(measure_scaling(sample_photos(), torch.device("cpu"), largest=32, rounds=1))
    assert [(case["side"], case["batch"]) for case in cases] == [(16, 1), (32, 1), (16, 2), (16, 4)]
    assert all(case["tokenizer_ms"] > 0 and case["features_ms"] > 0 and case["tokens"] >= 1 for case in cases)
