import pytest
import torch

from spit.bench import Setup, measure_stages, photo_batch
from spit.bench.photos import sample_photos

CPU = torch.device("cpu")


@pytest.mark.parametrize("training", [True, False])
def test_every_stage_has_a_row(training: bool) -> None:
    setup = Setup("spit_tiny_16", 32, 2, "fp32", CPU, compiled=False, training=training, peer=False, rounds=1)
    rows = list(measure_stages(setup, photo_batch(sample_photos(), 2, 32, 32)))
    assert [row.stage for row in rows] == ["tokenizer", "features", "inference"] + ["training"] * training
    for row in rows:
        assert row.ms_per_image * row.images_per_second == pytest.approx(1000)
        assert row.tokens is not None
        assert 1 <= row.tokens < 32 * 32


def test_precision() -> None:
    setup = Setup("spit_tiny_16", 32, 2, "bf16", CPU)
    with setup.autocast():
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") == torch.bfloat16
    with Setup("spit_tiny_16", 32, 2, "fp32", CPU).autocast():
        assert not torch.is_autocast_enabled("cpu")
