"""``spit bench``: what tokens cost on this machine, and whether they are the same on every device."""

from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from spit.bench import Timing, check_labels, measure_stages, photo_batch
from spit.bench.photos import sample_photos
from spit.bench.stages import model_to_time
from spit.cli.console import print_json, show, show_table, waiting
from spit.cli.measuring import DATA
from spit.cli.options import Models, Running
from spit.data.folders import image_paths
from spit.evaluation.report import machine
from spit.options import Options, option
from spit.predictor import DEFAULT_SIZE


@dataclass(frozen=True)
class Photos(Options):
    """What is measured on, and whether labels are compared instead of timed."""

    data: Path | None = option(None, DATA, metavar="FOLDER")
    check: bool = option(False, "Compare labels instead, image by image: the device's with the CPU's, or on a CPU "
                                "numba's with the reference's")


def bench(models: Models, timing: Timing, photos: Photos, running: Running) -> int:
    """Time tokenizer, features, inference and training, beside timm's ViT if timm is installed.

    --data has photos to measure on (default: those that scikit-image ships). A model by name is timed without its
    weights, which makes no difference. --check ends with exit code 1 if labels differ.
    """
    device = torch.device(running.place)
    paths = sample_photos() if photos.data is None else image_paths(photos.data)
    if photos.check:
        return _check(paths, device, running.as_json)
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
    peers = {row.stage: row for row in rows if row.model.startswith("timm")}
    cells = []
    for row in rows:
        peer = peers.get(row.stage, row)
        ratio = "" if peer is row else f"{row.images_per_second / peer.images_per_second:.2f}"
        cells.append([row.stage, row.model, f"{row.ms_per_image:.4f}", f"{row.images_per_second:.0f}",
                      "" if row.peak_gib is None else f"{row.peak_gib:.2f}", f"{row.tokens:.0f}", ratio])
    show(f"{machine(device)}; {size}², batch {timing.batch}, {timing.precision}{', compiled' * bool(timing.compiled)}")
    show_table(["stage", "model", "ms/image", "images/s", "peak GiB", "tokens", "of timm's"], cells, words=2)
    return 0


def _check(paths: list[Path], device: torch.device, as_json: bool) -> int:
    checks = []
    with waiting("Comparing labels") as say:
        for check in check_labels(paths, device):
            checks.append(check)
            say(f"Comparing labels; done: {check.tokenizer}, batch {check.batch}")
    exact = all(check.same == check.images for check in checks)
    if as_json:
        print_json({"machine": machine(device), "exact": exact, "checks": [asdict(check) for check in checks]})
    else:
        show(f"{machine(device)}: labels equal to {'the reference' if device.type == 'cpu' else 'numba'}'s")
        show_table(["tokenizer", "batch", "same", "images"],
                   [[check.tokenizer, str(check.batch), str(check.same), str(check.images)] for check in checks])
    return 0 if exact else 1
