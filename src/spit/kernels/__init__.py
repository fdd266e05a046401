"""One name for each hot operation; the device of its first argument picks the backend.

``kernels.reference`` defines the operations in plain torch; ``kernels.cpu`` has them in numba. Both
give the same partitions bit for bit. ``with kernels.backend("reference"):`` forces one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType

from torch import Tensor

from spit.kernels import cpu, reference
from spit.kernels.reference import Levels
from spit.kernels.rules import SCALE, Rules

__all__ = [
    "SCALE",
    "Levels",
    "Rules",
    "backend",
    "color_patches",
    "contrast",
    "diffuse",
    "gradient_histogram",
    "nearest_sites",
    "position_histogram",
    "region_boxes",
    "region_sizes",
    "scharr",
    "superpixels",
]

_BACKENDS: dict[str, ModuleType] = {"reference": reference, "cpu": cpu}
_forced: ContextVar[str | None] = ContextVar("forced_backend", default=None)


@contextmanager
def backend(name: str) -> Iterator[None]:
    """Run every operation in this block on the backend of that name."""
    if name not in _BACKENDS:
        raise ValueError(f"expected a backend among {', '.join(_BACKENDS)}, got {name!r}")
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def _backend(x: Tensor) -> ModuleType:
    name = _forced.get() or x.device.type
    if name not in _BACKENDS:
        raise ValueError(f"spit has no kernels for tensors on {x.device}; move the images to the CPU")
    return _BACKENDS[name]


def contrast(images: Tensor, table: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.contrast`."""
    return _backend(images).contrast(images, table)


def diffuse(features: Tensor, flux: Tensor, steps: int) -> Tensor:
    """See :func:`spit.kernels.reference.diffuse`."""
    return _backend(features).diffuse(features, flux, steps)


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """See :func:`spit.kernels.reference.superpixels`."""
    return _backend(features).superpixels(features, rules)


def nearest_sites(sites: Tensor, height: int, width: int) -> Tensor:
    """See :func:`spit.kernels.reference.nearest_sites`."""
    return _backend(sites).nearest_sites(sites, height, width)


def region_sizes(labels: Tensor, offsets: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.region_sizes`."""
    return _backend(labels).region_sizes(labels, offsets)


def region_boxes(labels: Tensor, offsets: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.region_boxes`."""
    return _backend(labels).region_boxes(labels, offsets)


def color_patches(images: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, resolution: int) -> Tensor:
    """See :func:`spit.kernels.reference.color_patches`."""
    return _backend(images).color_patches(images, labels, offsets, boxes, resolution)


def position_histogram(labels: Tensor, offsets: Tensor, bins: int, sigma: float) -> Tensor:
    """See :func:`spit.kernels.reference.position_histogram`."""
    return _backend(labels).position_histogram(labels, offsets, bins, sigma)


def gradient_histogram(gradients: Tensor, labels: Tensor, offsets: Tensor, bins: int, sigma: float) -> Tensor:
    """See :func:`spit.kernels.reference.gradient_histogram`."""
    return _backend(gradients).gradient_histogram(gradients, labels, offsets, bins, sigma)


def scharr(images: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.scharr`."""
    return _backend(images).scharr(images)
