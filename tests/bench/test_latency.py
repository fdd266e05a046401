import sys
from itertools import islice
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spit.bench import Latency, Plan, Timing, measure_latency, photo_batch
from spit.bench.latency import LEAST, draw
from spit.bench.photos import sample_photos
from spit.config import ModelConfig
from spit.model import SpitModel

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
SHORT = Plan((1, 2), calls=6, warm_up=1, seconds=60)


@pytest.fixture
def model() -> SpitModel:
    return SpitModel(ModelConfig(width=192, depth=1, heads=3, num_classes=10))


@pytest.fixture
def photos() -> Tensor:
    return photo_batch(sample_photos(), 8, 32, 32)


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """A timm with a model of one layer; what the model was given."""
    seen: list[Tensor] = []

    class Peer(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            assert not self.training
            seen.append(images)
            return images.mean((2, 3))

    fake: Any = ModuleType("timm")
    fake.__version__ = "0"
    fake.create_model = lambda name, **options: Peer()
    monkeypatch.setitem(sys.modules, "timm", fake)
    return seen


def test_a_row_for_each_batch_size(model: SpitModel, photos: Tensor) -> None:
    said: list[str] = []
    rows = list(measure_latency("ours", model, photos, CPU, SHORT, Timing(peer=False), said.append))
    assert [(row.model, row.batch, row.calls) for row in rows] == [("ours", 1, 6), ("ours", 2, 6)]
    assert said == ["Timing batches of 1", "Timing batches of 2"]
    for row in rows:
        assert 0 < row.p50_ms <= row.p99_ms
        assert row.images_per_second * row.p50_ms == pytest.approx(1000 * row.batch)
        assert 1 <= row.tokens < 32 * 32
        assert None not in (row.tokenizer_ms, row.features_ms, row.network_ms)


def test_timm_stands_beside_and_sees_the_same_photos(model: SpitModel, photos: Tensor, timm: list[Tensor]) -> None:
    ours: list[Tensor] = []

    def keep(_: nn.Module, given: tuple[Tensor]) -> None:
        assert len(ours) == len(timm), "calls alternate"
        ours.append(given[0])

    model.register_forward_pre_hook(keep)
    rows = list(measure_latency("ours", model, photos, CPU, SHORT))
    assert [(row.model, row.batch) for row in rows] == [
        ("ours", 1), ("timm 0 vit_tiny_patch16_224", 1), ("ours", 2), ("timm 0 vit_tiny_patch16_224", 2)]
    assert rows[1].tokens == 4
    assert rows[1].tokenizer_ms is None
    assert len(ours) == len(timm) == 2 * 7
    for own, given in zip(ours, timm, strict=True):
        assert own.dtype == torch.uint8
        torch.testing.assert_close((given + 1) * 127.5, own.float(), rtol=0, atol=1e-4)
        assert given.min() >= -1


def test_each_call_gets_other_photos(model: SpitModel, photos: Tensor) -> None:
    seen: list[bytes] = []
    model.register_forward_pre_hook(lambda _, given: seen.append(given[0].numpy().tobytes()))
    list(measure_latency("ours", model, photos, CPU, Plan((1,), 6, 1, 60), Timing(peer=False)))
    assert len(set(seen)) == len(seen) == 7


def test_draws_use_every_photo_before_any_again(photos: Tensor) -> None:
    drawn = torch.cat(list(islice(draw(photos, 2), 4)))
    assert sorted(image.numpy().tobytes() for image in drawn) == sorted(image.numpy().tobytes() for image in photos)
    first, second = islice(draw(photos, 8), 2)
    assert not torch.equal(first, second)
    assert torch.equal(first, next(draw(photos, 8)))
    assert next(draw(photos[:3], 7)).shape == (7, 3, 32, 32)


def test_time_runs_out_after_a_few_calls(model: SpitModel, photos: Tensor) -> None:
    [row] = measure_latency("ours", model, photos, CPU, Plan((1,), 50, 0, 1e-9), Timing(peer=False))
    assert row.calls == LEAST


def test_percentiles(model: SpitModel, photos: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(1, 1000))
    monkeypatch.setattr("spit.bench.latency._clocked", lambda calls, images: [float(next(times))])
    plan = Plan((4,), calls=200, warm_up=2, seconds=60)
    [row] = measure_latency("ours", model, photos, CPU, plan, Timing(peer=False))
    assert row == Latency("ours", 4, 200, row.tokens, 102.5, 200.0, 4000 / 102.5, row.tokenizer_ms, row.features_ms,
                          row.network_ms)  # of 3, 4 … 202


def test_precision_holds_for_all_of_the_network(model: SpitModel, photos: Tensor, timm: list[Tensor]) -> None:
    seen: list[torch.dtype] = []
    model.backbone.register_forward_hook(lambda *_: seen.append(torch.get_autocast_dtype("cpu")))
    list(measure_latency("ours", model, photos, CPU, Plan((1,), 1, 0, 60), Timing(precision="bf16")))
    assert set(seen) == {torch.bfloat16}
    assert {images.dtype for images in timm} == {torch.bfloat16}


def test_plans_depend_on_the_device() -> None:
    assert Plan.of(Timing(), CPU) == Plan((1, 2, 4, 8, 16, 32, 64), 50, 3, 20)
    assert Plan.of(Timing(), CUDA, 5).calls == 200
    assert Plan.of(Timing(batch=3, rounds=7), CUDA, 5) == Plan((3,), 7, 50, 5)
    assert Plan.of(Timing(), CPU).photos == 256
    assert Plan.of(Timing(batch=1), CUDA).photos == 250


def test_a_model_without_a_head(photos: Tensor) -> None:
    model = SpitModel(ModelConfig(width=32, depth=1, heads=2, num_classes=0))
    with pytest.raises(ValueError, match="headless: expected a model that knows classes"):
        next(measure_latency("headless", model, photos, CPU, SHORT))


def test_widths_that_timm_does_not_have(photos: Tensor, timm: list[Tensor]) -> None:
    model = SpitModel(ModelConfig(width=32, depth=1, heads=2, num_classes=10))
    assert [row.model for row in measure_latency("narrow", model, photos, CPU, Plan((1,), 1, 0, 60))] == ["narrow"]
    assert not timm
