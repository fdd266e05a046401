"""Each stage of a model timed on one batch."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit.bench.options import Cast, Timing
from spit.model import SpitModel
from spit.registry import ARCHITECTURES, create_model, load_model

Answer = TypeVar("Answer")
Say = Callable[[str], None]
MODE = "reduce-overhead"  # CUDA graphs, as spit train uses them
DROP_PATH = 0.2  # as the paper trains


@dataclass(frozen=True)
class Row:
    """One figure."""

    stage: str
    model: str
    ms_per_image: float
    images_per_second: float
    peak_gib: float | None
    tokens: float


def model_to_time(source: str) -> SpitModel:
    """A model by name, untrained, which takes as long as a trained one; or loaded, as :func:`spit.load_model` does."""
    if source.partition(".")[0] in ARCHITECTURES:
        return create_model(source, drop_path=DROP_PATH)
    return load_model(source)


def measure_stages(name: str, model: SpitModel, images: Tensor, timing: Timing = Timing(),  # noqa: B008
                   say: Say = lambda _: None) -> Iterator[Row]:
    """Tokenizer, features, inference and training, one after another.

    Args:
        name: of the model, for the rows.
        say: called with what is about to be timed.

    Shape:
        images ``(B, 3, H, W)`` uint8 on the device, where the model is moved too.
    """
    timing = timing.on(images.device)
    model = model.to(images.device)
    partition = model.tokenizer(images)
    tokens = float(partition.counts.float().mean())
    for stage, function in (("tokenizer", lambda: model.tokenizer(images)),
                            ("features", lambda: model.extractor(images, partition))):
        say(f"Timing {stage}, {name}")
        yield _row(stage, name, tokens, function, images, timing)
    yield from measure_network(name, model, images, tokens, timing, say, MODE)


def measure_network(name: str, network: nn.Module, images: Tensor, tokens: float, timing: Timing,
                    say: Say = lambda _: None, mode: str = "default") -> Iterator[Row]:
    """Inference and training of a network, ours or another.

    Args:
        tokens: of an image, for the rows.
        mode: of torch.compile.
    """
    timing = timing.on(images.device)
    cast = timing.cast(images.device)
    if timing.compiled:
        network.compile(mode=mode)
    say(f"Timing inference, {name}")
    yield _row("inference", name, tokens, _inference(network, images, cast), images, timing)
    if timing.training:
        say(f"Timing training, {name}")
        yield _row("training", name, tokens, _training(network, images, cast), images, timing)


def _row(stage: str, name: str, tokens: float, function: Callable[[], Any], images: Tensor, timing: Timing) -> Row:
    calls = partial(median_ms, function, images.device, timing.rounds or 20, warm_up=5)
    milliseconds, peak = with_peak_gib(calls, images.device)
    return Row(stage, name, milliseconds / len(images), 1000 * len(images) / milliseconds, peak, tokens)


def _inference(network: nn.Module, images: Tensor, cast: Cast) -> Callable[[], None]:
    network.eval()

    def infer() -> None:
        with torch.inference_mode(), cast():
            network(images)

    return infer


def _training(network: nn.Module, images: Tensor, cast: Cast) -> Callable[[], None]:
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=images.device.type == "cuda")
    classes = torch.zeros(len(images), dtype=torch.int64, device=images.device)  # which a model of any classes has

    def train() -> None:
        with cast():
            loss = F.cross_entropy(network(images), classes)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return train


def median_ms(function: Callable[[], Any], device: torch.device, rounds: int = 20, warm_up: int = 3) -> float:
    """Milliseconds of one call: the median of ``rounds`` after ``warm_up`` calls that are not counted.

    Timed by device events on CUDA and by the clock elsewhere.
    """
    return median([timed(function, device)[1] for _ in range(warm_up + rounds)][warm_up:])


def with_peak_gib(function: Callable[[], Answer], device: torch.device) -> tuple[Answer, float | None]:
    """What a function returns, and the most memory that torch held for it, CUDA graphs included; None on a CPU."""
    if device.type != "cuda":
        return function(), None
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved(device)
    torch.cuda.reset_peak_memory_stats(device)
    answer = function()
    torch.cuda.synchronize(device)
    return answer, (torch.cuda.max_memory_reserved(device) - before) / 2**30


def timed(function: Callable[[], Answer], device: torch.device) -> tuple[Answer, float]:
    """What one call returns, and its milliseconds: by device events on CUDA and by the clock elsewhere."""
    if device.type != "cuda":
        start = time.perf_counter()
        answer = function()
        return answer, 1000 * (time.perf_counter() - start)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    answer = function()
    end.record()
    torch.cuda.synchronize(device)
    return answer, float(begin.elapsed_time(end))
