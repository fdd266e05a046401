"""``spit bench``: what tokens cost on this machine, and whether they are the same on every device."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spit.bench.options import Timing
from spit.cli.console import print_json, show, show_table, waiting
from spit.cli.measuring import DATA
from spit.cli.options import Models, Running
from spit.devices import machine
from spit.options import Options, option

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Measuring(Options):
    """What is measured, and on which photos."""

    data: Path | None = option(None, DATA, metavar="FOLDER")
    check: bool = option(False, "Compare labels instead, image by image, for every option of the tokenizers: the "
                                "device's with the CPU's, or on a CPU numba's with the reference's")
    threads: int | None = option(None, "Threads on the CPU, of torch and of spit's kernels (default: torch's choice)",
                                 least=1)


def bench(models: Models, timing: Timing, measuring: Measuring, running: Running) -> int:
    """Time tokenizer, features, inference and training.

    --data has photos to measure on (default: those that scikit-image ships). A model by name is timed without its
    weights, which makes no difference. --check ends with exit code 1 if labels differ. In a clone of the project,
    benchmarks/peers.py times timm's ViT beside the model, and benchmarks/latency.py whole calls.
    """
    import torch

    from spit.bench.photos import photo_batch, sample_photos
    from spit.bench.stages import measure_stages, model_to_time
    from spit.data.folders import image_paths
    from spit.kernels.concurrency import torch_threads
    from spit.predictor import DEFAULT_SIZE

    device = torch.device(running.place)
    paths = sample_photos() if measuring.data is None else image_paths(measuring.data)
    with torch_threads(measuring.threads), torch.random.fork_rng(devices=()):
        if measuring.check:
            return _check(paths, device, running.as_json)
        timing.cast(device)  # refuses now what it cannot do
        source, timing = models.expect_one(), timing.on(device)
        model = model_to_time(source)
        size = models.size or model.config.eval_size or DEFAULT_SIZE
        with waiting("Measuring; compiling comes first") as say:
            batch = photo_batch(paths, timing.batch or 1, size, size).to(device)
            rows = list(measure_stages(source, model, batch, timing, say))
    if running.as_json:
        print_json({"setup": {"model": source, "size": size, **timing.to_dict(), "device": str(device), "seed": 0,
                              "machine": machine(device)}, "rows": [asdict(row) for row in rows]})
        return 0
    cells = [[row.stage, row.model, f"{row.ms_per_image:.4f}", f"{row.images_per_second:.0f}",
              "" if row.peak_gib is None else f"{row.peak_gib:.2f}", f"{row.tokens:.0f}"] for row in rows]
    show(f"{machine(device)}; {size}², batch {timing.batch}, {timing.precision}{', compiled' * bool(timing.compiled)}")
    show_table(["stage", "model", "ms/image", "images/s", "peak GiB", "tokens"], cells, words=2)
    return 0


def _check(paths: list[Path], device: "torch.device", as_json: bool) -> int:
    from spit.bench.check import BATCHES, check_labels

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
