import pytest
import torch

from spit.bench import Timing, measure_stages, median_ms, photo_batch
from spit.bench.photos import sample_photos
from spit.bench.stages import model_to_time, with_peak_gib

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("training", [True, False])
def test_every_stage_has_a_row(training: bool) -> None:
    timing = Timing(compiled=False, training=training, rounds=1)
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


@pytest.mark.parametrize(("precision", "expected"), [("fp32", None), ("bf16", torch.bfloat16)])
def test_precision(precision: str, expected: torch.dtype | None) -> None:
    seen: set[torch.dtype | None] = set()
    model = model_to_time("spit_tiny_16")
    model.register_forward_hook(lambda *_: seen.add(
        torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None))
    timing = Timing(precision=precision, training=False, rounds=1)
    list(measure_stages("ours", model, photo_batch(sample_photos(), 1, 32, 32), timing))
    assert seen == {expected}


def test_warm_up_is_called_and_not_counted() -> None:
    calls: list[int] = []
    assert median_ms(lambda: calls.append(0), CPU, rounds=5, warm_up=2) >= 0
    assert len(calls) == 7


def test_no_peak_on_a_cpu() -> None:
    assert with_peak_gib(lambda: 3, CPU) == (3, None)
