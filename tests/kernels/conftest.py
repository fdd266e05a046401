"""One test on every backend: ``backend`` is each of the three, ``compiled`` each that is tested against the reference.

The Triton kernels take tensors on the CPU too: Triton's interpreter runs them, or CUDA where there is one.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from spit import kernels
from spit.kernels.dispatch import load

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BLOCKED = ("superpixels", "refinement", "regions", "preprocess", "features")  # they launch by BLOCK


def send(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    return type(value)(send(item, device) for item in value) if isinstance(value, list | tuple) else value


class OnDevice:
    """A module whose functions take and give tensors on the CPU and run where Triton runs."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self.module, name)
        return lambda *given, **named: send(function(*(send(value, DEVICE) for value in given), **named),
                                            torch.device("cpu"))


@pytest.fixture(scope="session")
def gpu() -> OnDevice:
    """``kernels.triton``, for tensors on the CPU."""
    pytest.importorskip("triton", reason="no triton: pip install 'spit-vit[gpu]'")
    return OnDevice(import_module("spit.kernels.triton"))


@pytest.fixture(params=["reference", "numba", "triton"])
def backend(request: pytest.FixtureRequest) -> Any:
    """Each backend in turn."""
    return _backend(request)


@pytest.fixture(params=["numba", "triton"])
def compiled(request: pytest.FixtureRequest) -> Any:
    """Each backend but the reference in turn."""
    return _backend(request)


def _backend(request: pytest.FixtureRequest) -> Any:
    if request.param != "triton":
        return load(request.param)
    gpu = request.getfixturevalue("gpu")
    request.getfixturevalue("few_programs")
    return gpu


@pytest.fixture(scope="session")
def on_gpu(gpu: OnDevice) -> Callable[..., Any]:
    """``on_gpu(tokenizer, images)``: call anything on the backend ``"triton"``."""

    def call(function: Callable[..., Any], *given: Any) -> Any:
        with kernels.backend("triton"):
            return function(*(send(value, DEVICE) for value in given))

    return call


@pytest.fixture
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few programs, for regions that exist, not thousands: the interpreter runs them one after another."""
    monkeypatch.setattr("spit.features.extractor.step_of", lambda _: 4)
    monkeypatch.setattr(import_module("spit.kernels.triton.refinement"), "PROGRAMS", 3)
    monkeypatch.setattr(import_module("spit.kernels.triton.superpixels"), "BUSY", 12)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 16, so that small images have many."""
    for name in BLOCKED:
        monkeypatch.setattr(import_module(f"spit.kernels.triton.{name}"), "BLOCK", 16)
    monkeypatch.setattr(import_module("spit.kernels.triton.launch").blocks, "__defaults__", (16,))
    for name in ("CHUNK", "SQUARES", "WARP_SQUARES", "WARP_REGIONS"):
        monkeypatch.setattr(import_module("spit.kernels.triton.superpixels"), name, 32)


@pytest.fixture(scope="session")
def mixed(texture: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``mixed((3, C, H, W), low, high)``: one texture of conftest after another, a different one for each image."""

    def draw(shape: Sequence[int], low: int, high: int, first: int = 10) -> Tensor:
        return torch.cat([texture(seed, (1, *shape[1:]), low, high) for seed in range(first, first + shape[0])])

    return draw
