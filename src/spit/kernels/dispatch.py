"""Dispatch of the hot operations to the backend of their first argument; see :mod:`spit.kernels`."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from spit.errors import MissingExtra
from spit.kernels import reference
from spit.kernels.portable import Levels, compose, exact_sqrt, level_offsets, pieces, region_sizes
from spit.kernels.recording import Tensors, replay
from spit.kernels.rules import SCALE, Rules
from spit.options import check_choice

__all__ = [
    "BACKENDS", "SCALE", "Levels", "Rules", "backend", "between", "color_patches", "compose", "cut_tree", "diffuse",
    "draw_sites", "exact_sqrt", "gradient_histogram", "graph_tree", "grid_tree", "level_offsets", "look_up",
    "nearest_sites", "on_gpu", "pieces", "position_histogram", "recorded", "recut", "refine", "region_boxes",
    "region_features", "region_sizes", "region_tree", "saturate", "scharr", "superpixel_features", "superpixel_labels",
    "superpixels", "tree_labels",
]

Operation = TypeVar("Operation", bound=Callable[..., Any])

BACKENDS = ("reference", "numba", "triton")
_OF_DEVICE = {"cpu": "numba", "cuda": "triton"}
_MODULES = {"reference": "reference", "numba": "tensors", "triton": "triton"}
_forced: ContextVar[str | None] = ContextVar("forced_backend", default=None)


@contextmanager
def backend(name: str) -> Iterator[None]:
    """Run every operation in this block on the named backend."""
    check_choice("backend", name, BACKENDS)
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def _backend(first: object) -> ModuleType:
    x = first if isinstance(first, Tensor) else cast(Sequence[Tensor], first)[0]
    if x.requires_grad and torch.is_grad_enabled():
        return reference  # whose operations autograd knows
    name = _forced.get() or _OF_DEVICE.get(x.device.type)
    if name is None:
        raise ValueError(f"spit has no kernels for tensors on {x.device}; move the images to the CPU or to CUDA")
    return load(name)


@cache
def load(name: str) -> ModuleType:
    """The functions of a backend on tensors."""
    if name == "triton" and find_spec("triton") is None:
        raise MissingExtra("triton", "gpu", "running on a GPU")
    return import_module(f"spit.kernels.{_MODULES[name]}")


def on_gpu(tensors: Tensor | Tensors) -> bool:
    """Whether the Triton kernels serve operations on these."""
    return _backend(tensors).__name__ == "spit.kernels.triton"


def recorded(operation: Callable[[Tensors, Any], Tensors], tensors: Tensors,
             options: Hashable | Callable[[], Hashable]) -> Tensors:
    """The answer of an operation made of kernels, on a GPU from a recording, see :mod:`spit.kernels.recording`."""
    if on_gpu(tensors):
        return replay(operation, tensors, options)
    return operation(tensors, options() if callable(options) else options)


def _dispatched(definition: Operation) -> Operation:
    """Dispatch an operation to the backend of its first argument."""

    @wraps(definition)
    def operation(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else next(iter(kwargs.values()))
        return getattr(_backend(first), definition.__name__)(*args, **kwargs)

    return cast(Operation, operation)


look_up = _dispatched(reference.look_up)
diffuse = _dispatched(reference.diffuse)
saturate = _dispatched(reference.saturate)
superpixel_features = _dispatched(reference.superpixel_features)
superpixels = _dispatched(reference.superpixels)
superpixel_labels = _dispatched(reference.superpixel_labels)
between = _dispatched(reference.between)
refine = _dispatched(reference.refine)
tree_labels = _dispatched(reference.tree_labels)
grid_tree = _dispatched(reference.grid_tree)
graph_tree = _dispatched(reference.graph_tree)
cut_tree = _dispatched(reference.cut_tree)
recut = _dispatched(reference.recut)
region_tree = _dispatched(reference.region_tree)
draw_sites = _dispatched(reference.draw_sites)
nearest_sites = _dispatched(reference.nearest_sites)
region_boxes = _dispatched(reference.region_boxes)
color_patches = _dispatched(reference.color_patches)
position_histogram = _dispatched(reference.position_histogram)
gradient_histogram = _dispatched(reference.gradient_histogram)
scharr = _dispatched(reference.scharr)
region_features = _dispatched(reference.region_features)
