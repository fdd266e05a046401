"""``spit bench``: what tokens cost here, and whether they are the same everywhere."""

import json
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from spit.cli.console import answers, print_json, waiting
from spit.cli.options import AsJson, Device, choose_device
from spit.cli.outputs import write_files

ModelName = Annotated[str, typer.Option("--model", metavar="NAME", help="One of spit.list_models().")]
Size = Annotated[int, typer.Option("--size", min=16, help="Side of the images in pixels.")]
Batch = Annotated[int | None, typer.Option("--batch", min=1, show_default=False,
                                           help="Images in a batch; 256 on a GPU, 8 on a CPU unless told.")]
Precision = Annotated[str | None, typer.Option(
    "--precision", metavar="fp32|bf16|fp16", show_default=False,
    help="Of the transformer; bf16 on a GPU, fp32 on a CPU unless told. Tokens are always exact.")]
Compiled = Annotated[bool | None, typer.Option(
    "--compile/--no-compile", show_default=False,
    help="torch.compile, for timm's model as well; on a GPU unless told.")]
Training = Annotated[bool, typer.Option("--training/--no-training", help="Time training steps too.")]
Peer = Annotated[bool, typer.Option("--peer/--no-peer", help="timm's ViT of the same size in the same run.")]
Rounds = Annotated[int | None, typer.Option(
    "--rounds", min=1, show_default=False, help="Figures are medians of this many calls; 20 on a GPU, 5 on a CPU.")]
Photos = Annotated[Path | None, typer.Option("--images", metavar="FOLDER", show_default=False,
                                             help="Photos to measure on; scikit-image's samples unless told.")]
CheckFolder = Annotated[bool, typer.Option(
    "--check", help="Compare labels instead, image by image: the device's with the CPU's (on a CPU, numba's with the "
                    "reference's).")]
Scaling = Annotated[bool, typer.Option("--scaling", help="Measure growth with size and batch instead, and draw it.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where --scaling writes its files.")]


def bench(model: ModelName = "spit_tiny_16", size: Size = 224, batch: Batch = None, precision: Precision = None,
          compiled: Compiled = None, training: Training = True, peer: Peer = True, rounds: Rounds = None,
          images: Photos = None, check: CheckFolder = False, scaling: Scaling = False,
          output: Output = Path("spit-output"), device: Device = "auto", as_json: AsJson = False) -> int:
    """Time tokenizer, features, inference and training, beside timm's ViT where timm is installed.

    With --check, exit code 1 tells that some labels differ.
    """
    import torch

    from spit.bench import photos
    from spit.data.folders import image_paths

    place = torch.device(choose_device(device))
    paths = photos.sample_photos() if images is None else image_paths(images)
    machine = _machine(place)
    if check:
        return _check(paths, place, machine, as_json)
    if scaling:
        return _scaling(paths, place, machine, output, as_json)
    return _stages(paths, place, machine, as_json, model=model, size=size, batch=batch, precision=precision,
                   compiled=compiled, training=training, peer=peer, rounds=rounds)


def _stages(paths: list[Path], device: Any, machine: str, as_json: bool, batch: int | None, precision: str | None,
            compiled: bool | None, rounds: int | None, **options: Any) -> int:
    from spit.bench import Setup, measure_stages, photo_batch
    from spit.bench.stages import DTYPES

    gpu = device.type == "cuda"
    precision = precision or ("bf16" if gpu else "fp32")
    if precision not in DTYPES:
        raise ValueError(f"expected --precision among {', '.join(DTYPES)}, got {precision!r}")
    setup = Setup(batch=batch or (256 if gpu else 8), precision=precision, device=device,
                  compiled=gpu if compiled is None else compiled, rounds=rounds or (20 if gpu else 5), **options)
    with waiting("Measuring; compiling comes first") as say:
        photos = photo_batch(paths, setup.batch, setup.size, setup.size).to(device)
        rows = list(measure_stages(setup, photos, say))
    described = {**asdict(setup), "device": str(device), "machine": machine, "seed": 0}
    if as_json:
        print_json({"setup": described, "rows": [asdict(row) for row in rows]})
        return 0
    table = Table(title=f"{machine}; {setup.size}², batch {setup.batch}, {precision}"
                        f"{', compiled' if setup.compiled else ''}")
    for heading in ("stage", "model", "ms/image", "images/s", "peak GiB", "tokens", "of timm's"):
        table.add_column(heading, justify="left" if heading in ("stage", "model") else "right")
    peers = {row.stage: row for row in rows if row.model.startswith("timm")}
    for row in rows:
        peer = peers.get(row.stage)
        ratio = f"{row.images_per_second / peer.images_per_second:.2f}" if peer is not None and peer is not row else ""
        peak = "" if row.peak_gib is None else f"{row.peak_gib:.2f}"
        table.add_row(row.stage, row.model, f"{row.ms_per_image:.4f}", f"{row.images_per_second:.0f}", peak,
                      f"{row.tokens:.0f}", ratio)
    answers().print(table)
    return 0


def _check(paths: list[Path], device: Any, machine: str, as_json: bool) -> int:
    from spit.bench import check_labels

    checks = []
    with waiting("Comparing labels") as say:
        for check in check_labels(paths, device):
            checks.append(check)
            say(f"Comparing labels; done: {check.tokenizer}, batch {check.batch}")
    exact = all(check.same == check.images for check in checks)
    if as_json:
        print_json({"machine": machine, "exact": exact, "checks": [asdict(check) for check in checks]})
    else:
        other = "the reference's" if device.type == "cpu" else "numba's"
        table = Table(title=f"{machine}: labels equal to {other}")
        for heading in ("tokenizer", "batch", "same", "images"):
            table.add_column(heading, justify="left" if heading == "tokenizer" else "right")
        for check in checks:
            table.add_row(check.tokenizer, str(check.batch), str(check.same), str(check.images))
        answers().print(table)
    return 0 if exact else 1


def _scaling(paths: list[Path], device: Any, machine: str, output: Path, as_json: bool) -> int:
    from spit.bench import measure_scaling
    from spit.bench.plot import draw_scaling

    largest = 4096 if device.type == "cuda" else 1024
    cases = []
    with waiting(f"Measuring images up to {largest}²") as say:
        for case in measure_scaling(paths, device, largest):
            cases.append(case)
            say(f"Measuring images up to {largest}²; done: {case['side']}², batch {case['batch']}")
    document = {"machine": machine, "cases": cases}
    output.mkdir(parents=True, exist_ok=True)
    write_files({output / "scaling.json": (json.dumps(document, indent=2) + "\n").encode()}, [])
    draw_scaling(cases, f"Cost of superpixel tokens on {machine}", output / "scaling.png")
    if as_json:
        print_json(document)
        return 0
    table = Table(title=machine)
    for heading in ("image", "batch", "tokens", "tokenizer ms/image", "features ms/image"):
        table.add_column(heading, justify="right")
    for case in cases:
        table.add_row(f"{case['side']}²", str(case["batch"]), f"{case['tokens']:.0f}", f"{case['tokenizer_ms']:.4f}",
                      f"{case['features_ms']:.4f}")
    console = answers()
    console.print(table)
    console.print(f"The picture is {output / 'scaling.png'}")
    return 0


def _machine(device: Any) -> str:
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
