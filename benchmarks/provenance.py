"""What benchmarks share: options, a runner, and the machine, versions, commit, data and seed of every figure."""

import argparse
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress

import spit
from spit.errors import SpitError, Stopped
from spit.evaluation.runner import Runner
from spit.interruption import STOPPED, on_signals

PARENT = "weights/deit_tiny_patch16_224.safetensors"
ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
_LIBRARIES: list[torch.library.Library] = []  # torch forgets what a library defines when it is freed


def launch(main: Callable[[], None]) -> None:
    """Run a benchmark; data that is missing or cannot be read is one line on stderr, and exit code 2.

    Ctrl-C and SIGTERM stop it as they stop ``spit``: one line, and exit code 130.
    """
    try:
        with on_signals(signal.default_int_handler, signal.SIGTERM):
            main()
    except (KeyboardInterrupt, Stopped) as error:
        code, line = STOPPED, str(error) or "stopped"
    except (SpitError, OSError) as error:
        code, line = 2, " ".join(str(error).split())
        if str(SHARED) in line and not SHARED.is_dir():  # the default, which nobody spelled
            line = f"expected data in {SHARED}, but no such folder exists; give --shared FOLDER (docs/data.md)"
    else:
        return
    print(f"{Path(sys.argv[0]).name}: {line}", file=sys.stderr)
    raise SystemExit(code)


def arguments(purpose: str) -> argparse.ArgumentParser:
    """A parser with the one option that all benchmarks share."""
    parser = argparse.ArgumentParser(description=purpose, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder with data/ and weights/")
    return parser


def model_arguments(purpose: str, limit: int | None = None) -> argparse.ArgumentParser:
    """A parser with the options of benchmarks that run models over images."""
    parser = arguments(purpose)
    parser.add_argument("--model", action="append", default=[], help="a name, a folder or a file of weights")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--batch", type=int, help="images in a batch; by default the protocol's")
    parser.add_argument("--limit", type=int, default=limit, help="only so many images, spread over the set")
    parser.add_argument("--output", type=Path, help="folder for the answers, from which a stopped run resumes")
    return parser


def load_models(args: argparse.Namespace) -> list[spit.Predictor]:
    """The models of ``--model``, asked at 224 pixels, and after them their parent, DeiT-Tiny."""
    return [spit.load(source, args.device, 224) for source in [*args.model, args.shared / PARENT]]


@contextmanager
def open_runner(output: Path | None, batch: int | None = None) -> Iterator[Runner]:
    """A runner behind a progress bar."""
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        with Runner(None if output is None else output / "images.jsonl", lambda doing, done, total: bar.update(
                task, description=doing, completed=done, total=total), batch) as runner:
            yield runner


def print_provenance(data: str, seed: int | None = None) -> None:
    """Print where the figures below come from."""
    print("\n".join(provenance(data, seed)), "\n", sep="", flush=True)


def provenance(data: str, seed: int | None = None) -> list[str]:
    """Machine, versions, commit, data and seed."""
    return [f"machine  {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}",
            f"versions python {platform.python_version()}, torch {torch.__version__}, spit {spit.__version__}",
            f"commit   {_commit()}",
            f"data     {data}",
            f"seed     {'none: nothing is random' if seed is None else seed}"]


def import_timm() -> Any:
    """timm, also beside the CPU build of torch; ImportError if it is not installed.

    timm imports torchvision, whose compiled operators do not load beside another build of torch than its own, so that
    its import ends with "operator torchvision::nms does not exist". It wants no more than their signatures, and no ViT
    calls them.
    """
    try:
        return import_module("timm")
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _LIBRARIES.append(library)
        return import_module("timm")


def bsds_images(shared: Path) -> list[Path]:
    """The 200 test images of BSDS500; raises ImageError if they are missing."""
    folder = shared / "data" / "bsds500" / "images" / "test"
    paths = sorted(folder.glob("*.jpg"))
    if not paths:
        raise spit.ImageError(f"no BSDS500 images in {folder}; give the folder that holds data/ with --shared")
    return paths


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def _commit() -> str:
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True).stdout.strip()
    return (head or "no commit") + (" with uncommitted changes" if changed else "")
