"""Latency of whole calls, as a server sees them: from uint8 images in host memory to class scores there."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from statistics import fmean, median

import numpy as np
import torch
from torch import Tensor, nn

from spit.bench.stages import Answer, Cast, Say, Timing, peer_of, timed
from spit.images import ImageBlocks
from spit.model import SpitModel
from spit.predictor import Predictor
from spit.runtime import Runtime

BATCHES = (1, 2, 4, 8, 16, 32, 64)
CALLS = {"cpu": 50, "cuda": 200}
WARM_UP = {"cpu": 3, "cuda": 50}  # numbers of tokens are recorded on CUDA when they come a third time
LEAST = 5  # calls that are made however long they take
SECONDS = 20.0
STAGES = ("tokenizer_ms", "features_ms", "network_ms")

Network = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Plan:
    """Which calls are made.

    Attributes:
        batches: batch sizes.
        calls: timed calls of each.
        warm_up: calls before them, which are not counted.
        seconds: after which no further call of a batch size begins, if there were five.
    """

    batches: tuple[int, ...]
    calls: int
    warm_up: int
    seconds: float

    @classmethod
    def of(cls, timing: Timing, device: torch.device, seconds: float = SECONDS) -> "Plan":
        """The timing's own batch size and calls, or 1, 2, 4 … 64 and 200 on a GPU, 50 on a CPU."""
        batches = BATCHES if timing.batch is None else (timing.batch,)
        return cls(batches, timing.rounds or CALLS[device.type], WARM_UP[device.type], seconds)

    @property
    def photos(self) -> int:
        """How many to draw from: another for every call with one image, and four batches of the largest size."""
        return max(self.warm_up + self.calls, 4 * max(self.batches))


@dataclass(frozen=True)
class Latency:
    """Calls of one batch size.

    Attributes:
        calls: how many were timed; fewer than were asked for if time ran out.
        tokens: of an image, on average.
        p50_ms, p99_ms: half and 99 % of the calls took at most this long; of fewer than 100, p99 is the slowest.
        images_per_second: one call after another, at the median.
        tokenizer_ms, features_ms, network_ms: medians of each stage by itself, in further calls; None for timm's. Of a
            compiled model on a GPU, the network has the features too, which run in the same launch.
    """

    model: str
    batch: int
    calls: int
    tokens: float
    p50_ms: float
    p99_ms: float
    images_per_second: float
    tokenizer_ms: float | None = None
    features_ms: float | None = None
    network_ms: float | None = None


def measure_latency(name: str, model: SpitModel, photos: Tensor, device: torch.device, plan: Plan,
                    timing: Timing = Timing(), say: Say = lambda _: None,  # noqa: B008
                    runtime: Runtime | None = None) -> Iterator[Latency]:
    """Latency of a model for each batch size, each followed by that of timm's ViT of the same width, if there is one.

    The model runs in evaluation mode, compiled and in the precision that ``timing`` says. Each call gets other photos,
    so that the number of tokens changes from call to call. Calls of the two models alternate: they see the same photos
    and the same moments of a machine that others use too.

    Args:
        name: of the model, for the rows.
        photos: what calls draw from.
        device: where the models run; ours is moved there.
        say: called with what is about to be timed.
        runtime: the exported model, on a CPU, to be timed in its place.

    Shape:
        photos ``(P, 3, H, W)`` uint8 in host memory.

    Raises:
        ValueError: the model has no head, and so no scores.
    """
    timing = timing.on(device)
    cast = timing.cast(device)
    model = model.to(device).eval()
    Predictor(model, name).expect_classes()
    ours = model if runtime is None else partial(_on_runtime, runtime)
    stages = partial(_stages, model, device, cast) if runtime is None else partial(_runtime_stages, runtime)
    networks: list[tuple[str, nn.Module, Network]] = [(name, model, ours)]
    peer = peer_of(model, photos.shape[-1], device) if timing.peer else None
    if peer is not None:
        networks.append((*peer, partial(_normalised, peer[1].eval(), timing.dtype)))
    for _, network, _ in networks if timing.compiled else ():
        network.compile(**({} if network is model else {"mode": timing.peer_mode}))
    calls = [partial(_classify, function, device, cast) for _, _, function in networks]
    for batch in plan.batches:
        say(f"Timing batches of {batch}")
        draws = draw(photos, batch)
        spent = _repeat(partial(_clocked, calls), draws, plan.warm_up, plan.calls, plan.seconds)
        split = _repeat(stages, draws, 1, max(LEAST, len(spent) // 10))
        for (title, network, _), own in zip(networks, zip(*spent, strict=True), strict=True):
            p50 = median(own)
            row = Latency(title, batch, len(own), (photos.shape[-1] // 16) ** 2, p50,
                          float(np.percentile(own, 99, method="inverted_cdf")), 1000 * batch / p50)
            if network is model:
                tokens, *parts = zip(*split, strict=True)
                row = replace(row, tokens=fmean(tokens), **dict(zip(STAGES, map(median, parts), strict=True)))
            yield row


def draw(photos: Tensor, batch: int, seed: int = 0) -> Iterator[Tensor]:
    """Batches without end: each photo once, in random order, then each once more in another order."""
    random = torch.Generator().manual_seed(seed)
    order = torch.empty(0, dtype=torch.long)
    while True:
        while len(order) < batch:
            order = torch.cat([order, torch.randperm(len(photos), generator=random)])
        yield photos[order[:batch]]
        order = order[batch:]


def _repeat(measure: Callable[[Tensor], Answer], batches: Iterator[Tensor], warm_up: int, calls: int,
            seconds: float = inf) -> list[Answer]:
    """Measure batch after batch, until there are enough calls or, after the first five, time has run out."""
    for _ in range(warm_up):
        measure(next(batches))
    found: list[Answer] = []
    end = time.perf_counter() + seconds
    while len(found) < calls and (len(found) < LEAST or time.perf_counter() < end):
        found.append(measure(next(batches)))
    return found


def _classify(network: Network, device: torch.device, cast: Cast, images: Tensor) -> Tensor:
    """Class scores in host memory, which waits for the device."""
    with torch.inference_mode(), cast():
        return network(images.to(device)).float().softmax(1).cpu()


def _normalised(network: nn.Module, dtype: torch.dtype, images: Tensor) -> Tensor:
    """timm's ViT of uint8 images on the device, which it expects in [-1, 1]."""
    logits: Tensor = network(images.to(dtype) / 127.5 - 1)
    return logits


def _on_runtime(runtime: Runtime, images: Tensor) -> Tensor:
    """Logits of uint8 images from :mod:`spit.runtime`, one image after another."""
    return torch.from_numpy(np.stack([
        runtime.classify(*runtime.tokenize(image)).logits for image in images.numpy()]))


def _clocked(calls: Sequence[Network], images: Tensor) -> list[float]:
    """Milliseconds of each call by the clock, on every device."""
    spent = []
    for call in calls:
        start = time.perf_counter()
        call(images)
        spent.append(1000 * (time.perf_counter() - start))
    return spent


def _stages(model: SpitModel, device: torch.device, cast: Cast, images: Tensor) -> tuple[float, float, float, float]:
    """Tokens of an image, and milliseconds of τ, of φ, and of γ, f and h, one after another.

    A compiled model on a GPU runs φ, γ, f and h in one launch: the last number is then that launch's.
    """
    with torch.inference_mode(), cast():
        images = images.to(device)
        partition, tokenizer = timed(partial(model.tokenizer, images), device)
        tokens, features = timed(partial(model.extractor, images, partition), device)
        if model.replayed is not None and model.replayed.serves(ImageBlocks((images,)), partition):
            _, network = timed(partial(model.replayed, images, partition), device)
        else:
            _, network = timed(partial(model.run, tokens), device)
    return len(tokens.values) / len(images), tokenizer, features, network


def _runtime_stages(runtime: Runtime, images: Tensor) -> tuple[float, float, float, float]:
    """:func:`_stages` of :mod:`spit.runtime`, all images together."""
    cpu, spent = torch.device("cpu"), []
    for image in images.numpy():
        _, tokenizer = timed(partial(runtime.tokenizer, image), cpu)
        (found, given), both = timed(partial(runtime.tokenize, image), cpu)
        _, network = timed(partial(runtime.classify, found, given), cpu)
        spent.append((found.count, tokenizer, both - tokenizer, network))
    count, tokenizer, features, network = (sum(own) for own in zip(*spent, strict=True))
    return count / len(images), tokenizer, features, network
