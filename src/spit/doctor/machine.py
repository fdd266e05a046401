"""What is here: versions, backends, devices and caches."""

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

import spit
from spit.kernels.numba.regions import gather

CORE = ("torch", "numpy", "numba", "Pillow", "safetensors")
OPTIONAL = ("triton", "typer", "rich", "scikit-image", "huggingface_hub", "onnx", "onnxruntime", "timm", "transformers",
            "captum", "ray", "fastapi")
NVIDIA = Path("/proc/driver/nvidia/version")


def describe_machine() -> dict[str, Any]:
    """Everything that a report of a fault should say, as JSON has it."""
    return {
        "spit": {"version": spit.__version__, "folder": str(Path(str(spit.__file__)).parent)},
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "system": {"name": platform.platform(), "processor": platform.processor() or platform.machine(),
                   "cores": os.cpu_count(), "torch_threads": torch.get_num_threads()},
        "versions": {name: installed(name) for name in (*CORE, *OPTIONAL)},
        "backends": backends(),
        "devices": devices(),
        "caches": {name: str(path) if path else None for name, path in caches().items()},
    }


def machine_faults() -> Iterator[str]:
    """One line for a GPU that spit cannot use, and for compiled loops that cannot be kept."""
    if NVIDIA.exists() and not torch.cuda.is_available():
        yield "an NVIDIA driver is here, but torch finds no CUDA device; install a CUDA build of torch"
    if torch.cuda.is_available() and "triton" not in backends():
        yield "a CUDA device is here, but triton is not installed; pip install triton"
    if caches()["numba"] is None:
        yield "numba has no folder that it can write to, so every process compiles again; set NUMBA_CACHE_DIR"


def installed(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def backends() -> list[str]:
    """The backends of the kernels that run here."""
    return ["reference", "numba", *(["triton"] if torch.cuda.is_available() and find_spec("triton") else [])]


def devices() -> list[dict[str, Any]]:
    """The devices that torch finds."""
    found: list[dict[str, Any]] = [{"name": "cpu"}]
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        properties = torch.cuda.get_device_properties(index)
        found.append({"name": f"cuda:{index}", "model": properties.name, "memory_bytes": properties.total_memory})
    return found


def caches() -> dict[str, Path | None]:
    """Where compiled loops and downloads are kept; None where nothing can be kept."""
    compiled = gather.stats.cache_path
    hub = os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME", Path.home() / ".cache/huggingface")) / "hub"
    return {"numba": Path(compiled) if compiled else None, "hub": Path(hub), "temporary": Path(tempfile.gettempdir())}
