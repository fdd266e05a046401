"""Latency of whole calls, as a server sees them: uint8 images in host memory to class scores there.

    python benchmarks/latency.py --size 224 --images FOLDER              # batches of 1, 2, 4 … 64
    python benchmarks/latency.py --batch 1 --device cpu --threads 1      # --runtime: onnxruntime in torch's place

Beside timm's ViT of the same width, if timm has one. Each call gets other photos, so that the number of tokens changes
from call to call. Calls of the two models alternate: they see the same photos and the same moments of a machine that
others use too. On a GPU both are compiled and run in bf16. p50 and p99 are of 200 calls on a GPU and 50 on a CPU, or of
as many as fit in 20 s; the tokenizer's time is the median of further calls.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import torch
from peers import peer_of
from provenance import arguments, launch, print_provenance
from torch import Tensor, nn

import spit
from spit.bench import Timing, photo_batch
from spit.bench.photos import sample_photos
from spit.bench.stages import Cast, timed
from spit.data.folders import image_paths
from spit.devices import choose_device, machine
from spit.export import Exporting, export
from spit.kernels.concurrency import torch_threads
from spit.runtime import Runtime, load

BATCHES = (1, 2, 4, 8, 16, 32, 64)
CALLS = {"cpu": 50, "cuda": 200}
WARM_UP = {"cpu": 3, "cuda": 50}  # numbers of tokens are recorded on CUDA when they come a third time
LEAST = 5  # calls that are made however long they take
SEED = 0

Answer = TypeVar("Answer")
Network = Callable[[Tensor], Tensor]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", help="a folder of photos; by default scikit-image's samples")
    parser.add_argument("--model", default="spit_tiny_16", help="what spit.load takes")
    parser.add_argument("--size", type=int, help="side of the squares; by default the model's")
    parser.add_argument("--batch", type=int, help="images in a call; by default 1, 2, 4 … 64")
    parser.add_argument("--calls", type=int, help="by default 200 with CUDA, 50 on a CPU")
    parser.add_argument("--seconds", type=float, default=20, help="for each batch size; at least five calls are made")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--threads", type=int, help="on the CPU; by default torch's choice")
    parser.add_argument("--runtime", action="store_true", help="spit.runtime in torch's place, on a CPU")
    parser.add_argument("--no-peer", action="store_true", help="leave timm out")
    parser.add_argument("--peer-mode", default="default", help="of torch.compile for timm's model")
    args = parser.parse_args()
    device = torch.device(choose_device(args.device))
    if args.runtime and device.type != "cpu":
        raise spit.SpitError(f"expected --device cpu with --runtime, got {device}")
    predictor = spit.load(args.model, device, args.size)
    predictor.expect_classes()
    timing, batches = Timing().on(device), BATCHES if args.batch is None else (args.batch,)
    calls, warm_up = args.calls or CALLS[device.type], WARM_UP[device.type]
    paths = image_paths(args.images) if args.images else sample_photos()
    with torch_threads(args.threads), TemporaryDirectory() as folder:
        print_provenance(f"{len(paths)} photos, random squares of them at {predictor.size}²; {args.model}"
                         f"{' on spit.runtime' * args.runtime}, {timing.precision}, on {machine(device)}", SEED)
        photos = photo_batch(paths, max(warm_up + calls, 4 * max(batches)), predictor.size, predictor.size, SEED)
        model, cast = predictor.model, timing.cast(device)
        ours: Network = model
        tokenizer: Callable[[Tensor], float] = partial(_tokenized, model, device)
        if args.runtime:
            written = export(model, Path(folder) / "model.onnx", Exporting(outputs="classes"))
            runtime = load(written.path, args.threads)
            ours, tokenizer = partial(_on_runtime, runtime), partial(_tokenized_on_runtime, runtime)
        networks = [ours]
        peer = None if args.no_peer else peer_of(model, predictor.size, device)
        if peer is not None:
            networks.append(partial(_normalised, peer[1].eval(), timing.dtype))
        if timing.compiled:
            model.compile()
        if timing.compiled and peer is not None:
            peer[1].compile(mode=args.peer_mode)
        print("timm, or a ViT of this width in it, was not found\n" if peer is None else f"beside {peer[0]}\n")
        print("| batch | calls | p50 ms | p99 ms | images/s | tokenizer ms | timm: p50 | p99 | of timm's |\n|" +
              "---:|" * 9)
        for batch in batches:
            draws = draw(photos, batch)
            spent = _repeat(partial(_clocked, [partial(_classify, one, device, cast) for one in networks]), draws,
                            warm_up, calls, args.seconds)
            cells = [(median(own), float(np.percentile(own, 99, method="inverted_cdf")))
                     for own in zip(*spent, strict=True)]
            tokenized = median(_repeat(tokenizer, draws, 1, max(LEAST, len(spent) // 10)))
            (p50, p99), *beside = cells
            theirs = "| | |" if not beside else f"{beside[0][0]:.2f} | {beside[0][1]:.2f} | {beside[0][0] / p50:.2f} |"
            print(f"| {batch} | {len(spent)} | {p50:.2f} | {p99:.2f} | {1000 * batch / p50:.0f} | {tokenized:.2f} | "
                  f"{theirs}", flush=True)


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


def _tokenized(model: spit.SpitModel, device: torch.device, images: Tensor) -> float:
    """Milliseconds of τ."""
    with torch.inference_mode():
        return timed(partial(model.tokenizer, images.to(device)), device)[1]


def _tokenized_on_runtime(runtime: Runtime, images: Tensor) -> float:
    """:func:`_tokenized` of :mod:`spit.runtime`, all images together."""
    return sum(timed(partial(runtime.tokenizer, image), torch.device("cpu"))[1] for image in images.numpy())


if __name__ == "__main__":
    launch(main)
