"""``spit bench``: what tokens cost on this machine, and whether they are the same on every device."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from spit import kernels
from spit.bench import Plan, Timing, check_labels, measure_latency, measure_stages, photo_batch
from spit.bench.check import BATCHES
from spit.bench.latency import LEAST, SECONDS
from spit.bench.photos import sample_photos
from spit.bench.stages import model_to_time
from spit.cli.console import print_json, show, show_table, waiting
from spit.cli.measuring import DATA
from spit.cli.options import Models, Running
from spit.data.folders import image_paths
from spit.evaluation.report import machine
from spit.export import Exporting, export
from spit.kernels.concurrency import torch_threads
from spit.model import SpitModel
from spit.options import Options, option
from spit.predictor import DEFAULT_SIZE
from spit.runtime import Runtime, load


@dataclass(frozen=True)
class Measuring(Options):
    """What is measured, and on which photos."""

    data: Path | None = option(None, DATA, metavar="FOLDER")
    latency: bool = option(False, "Time whole calls instead, as a server sees them, from uint8 images in host memory "
                                  "to class scores there, in batches of 1, 2, 4 … 64 or of --batch")
    runtime: bool = option(False, "With --latency on a CPU: time spit.runtime in torch's place, the model exported for "
                                  "its classes alone, on onnxruntime")
    seconds: float = option(SECONDS, f"With --latency: time limit for each batch size; at least {LEAST} calls are made",
                            above=0)
    check: bool = option(False, "Compare labels instead, image by image, for every option of the tokenizers: the "
                                "device's with the CPU's, or on a CPU numba's with the reference's")
    threads: int | None = option(None, "Threads on the CPU, of torch and of spit's kernels (default: torch's choice)",
                                 least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.check and self.latency:
            raise ValueError("expected --check or --latency, got both; run one after the other")
        if self.runtime and not self.latency:
            raise ValueError("expected --latency with --runtime, which times whole calls; add --latency")


@dataclass(frozen=True)
class Subject:
    """A model, the photos that it is timed on, and where."""

    source: str
    model: SpitModel
    size: int
    paths: list[Path]
    device: torch.device

    def photos(self, count: int) -> Tensor:
        """Squares of the model's size in host memory, ``(count, 3, H, W)`` uint8."""
        return photo_batch(self.paths, count, self.size, self.size)

    def document(self, options: dict[str, Any], rows: Sequence[Any]) -> dict[str, Any]:
        """What was measured, as JSON."""
        return {"setup": {"model": self.source, "size": self.size, **options, "device": str(self.device), "seed": 0,
                          "machine": machine(self.device)}, "rows": [asdict(row) for row in rows]}


def bench(models: Models, timing: Timing, measuring: Measuring, running: Running) -> int:
    """Time tokenizer, features, inference and training, beside timm's ViT if timm is installed.

    --data has photos to measure on (default: those that scikit-image ships). A model by name is timed without its
    weights, which makes no difference. --latency times whole calls of inference: median, 99th percentile, and the
    median of each stage. --check ends with exit code 1 if labels differ.
    """
    device = torch.device(running.place)
    kernels.compile_at_once()  # plain operations of a fresh install are not what is measured
    paths = sample_photos() if measuring.data is None else image_paths(measuring.data)
    with torch_threads(measuring.threads):
        if measuring.check:
            return _check(paths, device, running.as_json)
        timing.cast(device)  # refuses now what it cannot do
        source = models.expect_one()
        model = model_to_time(source)
        subject = Subject(source, model, models.size or model.config.eval_size or DEFAULT_SIZE, paths, device)
        if measuring.latency:
            return _latency(subject, timing, measuring, running.as_json)
        return _stages(subject, timing.on(device), running.as_json)


def _stages(subject: Subject, timing: Timing, as_json: bool) -> int:
    with waiting("Measuring; compiling comes first") as say:
        batch = subject.photos(timing.batch or 1).to(subject.device)
        rows = list(measure_stages(subject.source, subject.model, batch, timing, say))
    if as_json:
        print_json(subject.document(timing.to_dict(), rows))
        return 0
    peers = {row.stage: row for row in rows if row.model.startswith("timm")}
    cells = []
    for row in rows:
        peer = peers.get(row.stage, row)
        ratio = "" if peer is row else f"{row.images_per_second / peer.images_per_second:.2f}"
        cells.append([row.stage, row.model, f"{row.ms_per_image:.4f}", f"{row.images_per_second:.0f}",
                      "" if row.peak_gib is None else f"{row.peak_gib:.2f}", f"{row.tokens:.0f}", ratio])
    show(f"{machine(subject.device)}; {subject.size}², batch {timing.batch}, {_computing(timing)}")
    show_table(["stage", "model", "ms/image", "images/s", "peak GiB", "tokens", "of timm's"], cells, words=2)
    return 0


def _latency(subject: Subject, timing: Timing, measuring: Measuring, as_json: bool) -> int:
    plan, timing = Plan.of(timing, subject.device, measuring.seconds), timing.on(subject.device)
    with waiting("Measuring; compiling comes first") as say:
        if measuring.runtime:
            say("Exporting")
        runtime = _exported(subject, timing, measuring.threads) if measuring.runtime else None
        rows = list(measure_latency(subject.source, subject.model, subject.photos(plan.photos), subject.device, plan,
                                    timing, say, runtime))
    if as_json:
        options = {"precision": timing.precision, "compiled": timing.compiled, "runtime": measuring.runtime,
                   **asdict(plan)}
        print_json(subject.document(options, rows))
        return 0
    peers = {row.batch: row for row in rows if row.model.startswith("timm")}
    cells = []
    for row in rows:
        if row.tokenizer_ms is None or row.features_ms is None or row.network_ms is None:
            continue  # timm's, which stands beside ours
        peer = peers.get(row.batch)
        beside = [] if peer is None else [
            f"{peer.p50_ms:.2f}", f"{peer.p99_ms:.2f}", f"{row.images_per_second / peer.images_per_second:.2f}"]
        cells.append([str(row.batch), str(row.calls), f"{row.p50_ms:.2f}", f"{row.p99_ms:.2f}",
                      f"{row.images_per_second:.0f}", f"{row.tokens:.0f}", f"{row.tokenizer_ms:.2f}",
                      f"{row.features_ms:.2f}", f"{row.network_ms:.2f}", *beside])
    show(f"{machine(subject.device)}; {subject.source}{' on spit.runtime' * measuring.runtime}, {subject.size}², "
         f"{_computing(timing)}")
    for peer in list(peers.values())[:1]:
        show(f"beside {peer.model}")
    if timing.peer and not peers:
        show("timm, or a ViT of this width in it, was not found: nothing to compare with")
    show(f"uint8 images in host memory to class scores there; other photos in each call; {plan.warm_up} calls to warm "
         f"up, then {plan.calls} or as many as fit in {plan.seconds:g} s; stages are medians of further calls")
    show_table(["batch", "calls", "p50 ms", "p99 ms", "images/s", "tokens", "tokenizer ms", "features ms",
                "network ms",
                *(["timm p50", "timm p99", "of timm's"] if peers else [])], cells, words=0)
    return 0


def _exported(subject: Subject, timing: Timing, threads: int | None) -> Runtime:
    """The model on onnxruntime, exported for its classes alone."""
    if subject.device.type != "cpu" or timing.compiled or timing.precision != "fp32":
        raise ValueError(f"expected --device cpu, fp32 and no --compile with --runtime, got {subject.device}, "
                         f"{_computing(timing)}; leave --runtime out to time torch")
    with TemporaryDirectory() as folder:
        file = export(subject.model.cpu().eval(), Path(folder) / "model.onnx", Exporting(outputs="classes")).path
        return load(file, threads)


def _check(paths: list[Path], device: torch.device, as_json: bool) -> int:
    checks = []
    with waiting("Comparing labels") as say:
        for check in check_labels(paths, device):
            checks.append(check)
            say(f"{check.tokenizer}, batch {check.batch}: {check.same} of {check.images} equal")
    exact = all(check.same == check.images for check in checks)
    if as_json:
        print_json({"machine": machine(device), "exact": exact, "checks": [asdict(check) for check in checks]})
    else:
        show(f"{machine(device)}: images whose labels equal {'the reference' if device.type == 'cpu' else 'numba'}'s")
        same: dict[str, list[str]] = {}
        for check in checks:
            same.setdefault(check.tokenizer, [str(check.images)]).append(str(check.same))
        show_table(["tokenizer", "images", *(f"batch {batch}" for batch in BATCHES)],
                   [[name, *counts] for name, counts in same.items()])
    return 0 if exact else 1


def _computing(timing: Timing) -> str:
    return f"{timing.precision}{', compiled' * bool(timing.compiled)}"
