"""``spit bench``: what tokens cost on this machine, and whether they are the same on every device."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from spit.bench import Setup, check_labels, measure_scaling, measure_stages, photo_batch
from spit.bench.photos import sample_photos
from spit.bench.plot import draw_scaling
from spit.bench.stages import create
from spit.cli.console import answers, print_json, waiting
from spit.cli.measuring import DATA
from spit.cli.options import Models, Output, Running
from spit.cli.outputs import write_files
from spit.data.folders import image_paths
from spit.evaluation.plots import check_matplotlib
from spit.evaluation.report import machine
from spit.evaluation.runner import Computing
from spit.options import option
from spit.predictor import DEFAULT_SIZE


@dataclass(frozen=True)
class Timing(Computing):
    """What is timed."""

    compiled: bool | None = option(None, "torch.compile, for timm's model as well (default: on a GPU)",
                                   flag="compile/--no-compile")
    training: bool = option(True, "Time training steps too")
    peer: bool = option(True, "Time timm's ViT of the same width in the same run, if timm is installed")
    rounds: int | None = option(None, "Calls that a median is of (default: on a GPU 20, on a CPU 5)", least=1)
    data: Path | None = option(None, DATA, metavar="FOLDER")
    check: bool = option(False, "Compare labels instead, image by image: the device's with the CPU's, or on a CPU "
                                "numba's with the reference's")
    scaling: bool = option(False, "Measure growth with size and batch instead, and draw it")

    def setup(self, models: Models, place: torch.device) -> Setup:
        """What :func:`measure_stages` takes."""
        models.expect_one()
        [source], gpu = models.model, place.type == "cuda"
        return Setup(source, models.size or create(source).config.eval_size or DEFAULT_SIZE,
                     self.batch or (256 if gpu else 8), self.precision or ("bf16" if gpu else "fp32"), place,
                     gpu if self.compiled is None else self.compiled, self.training, self.peer,
                     self.rounds or (20 if gpu else 5))


def bench(models: Models, timing: Timing, output: Output, running: Running) -> int:
    """Time tokenizer, features, inference and training, beside timm's ViT if timm is installed.

    --data has photos to measure on, by default those that scikit-image ships. A model by name is timed without its
    weights, which makes no difference. With --check, exit code 1 says that some labels differ. With --scaling,
    scaling.json and scaling.png are written to --output.
    """
    place = torch.device(running.place)
    paths = sample_photos() if timing.data is None else image_paths(timing.data)
    if timing.check:
        return _check(paths, place, running.as_json)
    if timing.scaling:
        return _scaling(paths, place, output.output, running.as_json)
    return _stages(paths, timing.setup(models, place), running.as_json)


def _stages(paths: list[Path], setup: Setup, as_json: bool) -> int:
    with waiting("Measuring; compiling comes first") as say:
        photos = photo_batch(paths, setup.batch, setup.size, setup.size).to(setup.device)
        rows = list(measure_stages(setup, photos, say))
    if as_json:
        described = {**asdict(setup), "device": str(setup.device), "machine": machine(setup.device), "seed": 0}
        print_json({"setup": described, "rows": [asdict(row) for row in rows]})
        return 0
    peers = {row.stage: row for row in rows if row.model.startswith("timm")}
    cells = []
    for row in rows:
        peer = peers.get(row.stage)
        ratio = f"{row.images_per_second / peer.images_per_second:.2f}" if peer is not None and peer is not row else ""
        cells.append([row.stage, row.model, f"{row.ms_per_image:.4f}", f"{row.images_per_second:.0f}",
                      "" if row.peak_gib is None else f"{row.peak_gib:.2f}", f"{row.tokens:.0f}", ratio])
    title = (f"{machine(setup.device)}; {setup.size}², batch {setup.batch}, {setup.precision}"
             f"{', compiled' if setup.compiled else ''}")
    _print(title, ["stage", "model", "ms/image", "images/s", "peak GiB", "tokens", "of timm's"], cells, words=2)
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
        other = "the reference's" if device.type == "cpu" else "numba's"
        _print(f"{machine(device)}: labels equal to {other}", ["tokenizer", "batch", "same", "images"],
               [[check.tokenizer, str(check.batch), str(check.same), str(check.images)] for check in checks])
    return 0 if exact else 1


def _scaling(paths: list[Path], device: torch.device, output: Path, as_json: bool) -> int:
    check_matplotlib()
    largest = 4096 if device.type == "cuda" else 1024
    cases = []
    with waiting(f"Measuring images up to {largest}²") as say:
        for case in measure_scaling(paths, device, largest):
            cases.append(case)
            say(f"Measuring images up to {largest}²; done: {case['side']}², batch {case['batch']}")
    document: dict[str, Any] = {"machine": machine(device), "cases": cases}
    picture = output / "scaling.png"
    write_files({output / "scaling.json": (json.dumps(document, indent=2) + "\n").encode(),
                 picture: draw_scaling(cases, f"Cost of superpixel tokens on {machine(device)}")})
    if as_json:
        print_json(document)
        return 0
    _print(machine(device), ["image", "batch", "tokens", "tokenizer ms/image", "features ms/image"],
           [[f"{case['side']}²", str(case["batch"]), f"{case['tokens']:.0f}", f"{case['tokenizer_ms']:.4f}",
             f"{case['features_ms']:.4f}"] for case in cases])
    answers().print(f"The picture is {picture}")
    return 0


def _print(title: str, headings: Sequence[str], cells: Sequence[Sequence[str]], words: int = 1) -> None:
    table = Table(title=title)
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index < words else "right")
    for row in cells:
        table.add_row(*row)
    answers().print(table)
