"""The numba backend for tensors on the CPU: the functions of :mod:`spit.kernels.numba`, which share their memory."""


from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from spit.kernels import numba
from spit.kernels.sampling import differentiable, side_by_side

Operation = TypeVar("Operation", bound=Callable[..., Any])


def to_arrays(value: Any) -> Any:
    """Tensors, also in lists and tuples, as contiguous arrays."""
    if isinstance(value, Tensor):
        return value.detach().contiguous().numpy()
    return type(value)(map(to_arrays, value)) if isinstance(value, list | tuple) else value


def to_tensors(value: Any) -> Any:
    """Arrays, also in lists and tuples, as tensors."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    return type(value)(map(to_tensors, value)) if isinstance(value, list | tuple) else value


def on_tensors(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation on arrays, for tensors."""

    @wraps(operation)
    def call(*args: Any, **kwargs: Any) -> Any:
        return to_tensors(operation(*map(to_arrays, args), **{key: to_arrays(arg) for key, arg in kwargs.items()}))

    return call


between = on_tensors(numba.between)
compose = on_tensors(numba.compose)
diffuse = on_tensors(numba.diffuse)
draw_sites = on_tensors(numba.draw_sites)
gradient_histogram = on_tensors(numba.gradient_histogram)
look_up = on_tensors(numba.look_up)
nearest_sites = on_tensors(numba.nearest_sites)
position_histogram = on_tensors(numba.position_histogram)
refine = on_tensors(numba.refine)
region_boxes = on_tensors(numba.region_boxes)
saturate = on_tensors(numba.saturate)
scharr = on_tensors(numba.scharr)
superpixel_features = on_tensors(numba.superpixel_features)
superpixel_labels = on_tensors(numba.superpixel_labels)
superpixels = on_tensors(numba.superpixels)
color_patches = differentiable(on_tensors(numba.sample_colors))

_float32_features = on_tensors(numba.region_features)
_side_by_side = side_by_side(look_up, color_patches, position_histogram, gradient_histogram)


def region_features(images: Tensor, table: Tensor | None, gradients: Tensor | None, labels: Tensor, offsets: Tensor,
                    boxes: Tensor, windows: Tensor, resolution: int, masked: bool, position: tuple[int, float],
                    texture: tuple[int, float], dtype: torch.dtype = torch.float32) -> Tensor:
    """See :func:`spit.kernels.reference.region_features`."""
    arguments = (images, table, gradients, labels, offsets, boxes, windows, resolution, masked, position, texture)
    if (torch.is_grad_enabled() and images.requires_grad) or torch.float64 in (images.dtype, dtype):
        return _side_by_side(*arguments, dtype)
    features: Tensor = _float32_features(*arguments).to(dtype)
    return features
