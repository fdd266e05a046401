"""What every figure is printed with: machine, versions, commit, data and seed."""

import argparse
import os
import platform
import subprocess
from pathlib import Path

import torch

import spit

ROOT = Path(__file__).resolve().parents[1]


def arguments(purpose: str) -> argparse.ArgumentParser:
    """A parser with the one option that all benchmarks share."""
    parser = argparse.ArgumentParser(description=purpose, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="folder with data/ and weights/")
    return parser


def print_provenance(data: str, seed: int | None = None) -> None:
    """Print where the figures below come from."""
    print(f"machine  {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}")
    print(f"versions python {platform.python_version()}, torch {torch.__version__}, spit {spit.__version__}")
    print(f"commit   {_commit()}")
    print(f"data     {data}")
    print(f"seed     {'none: nothing is random' if seed is None else seed}\n", flush=True)


def bsds_images(shared: Path) -> list[Path]:
    """The 200 test images of BSDS500, or an exit that says what is missing."""
    folder = shared / "data" / "bsds500" / "images" / "test"
    paths = sorted(folder.glob("*.jpg"))
    if not paths:
        raise SystemExit(f"no BSDS500 images in {folder}; give the folder that holds data/ with --shared")
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
