import pytest
import torch

from spit.bench import Timing, measure_stages, photo_batch
from spit.bench.photos import sample_photos
from spit.bench.stages import model_to_time

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("training", [True, False])
def test_every_stage_has_a_row(training: bool) -> None:
    timing = Timing(compiled=False, training=training, peer=False, rounds=1)
    photos = photo_batch(sample_photos(), 2, 32, 32)
    rows = list(measure_stages("ours", model_to_time("spit_tiny_16"), photos, timing))
    assert [row.stage for row in rows] == ["tokenizer", "features", "inference"] + ["training"] * training
    assert {row.model for row in rows} == {"ours"}
    for row in rows:
        assert row.ms_per_image * row.images_per_second == pytest.approx(1000)
        assert 1 <= row.tokens < 32 * 32


def test_defaults_depend_on_the_device() -> None:
    assert Timing().on(CPU) == Timing(batch=8, precision="fp32", compiled=False, rounds=5)
    assert Timing(rounds=3, compiled=False).on(CUDA) == Timing(batch=256, precision="bf16", compiled=False, rounds=3)


def test_precision() -> None:
    with Timing(precision="bf16").autocast(CPU):
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") == torch.bfloat16
    with Timing(precision="fp32").autocast(CPU):
        assert not torch.is_autocast_enabled("cpu")
