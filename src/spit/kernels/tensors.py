"""The numba backend for tensors on the CPU: the functions of :mod:`spit.kernels.numba`, which share their memory."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spit.kernels import numba


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
color_patches = on_tensors(numba.color_patches)
cut_tree = on_tensors(numba.cut_tree)
diffuse = on_tensors(numba.diffuse)
draw_sites = on_tensors(numba.draw_sites)
gradient_histogram = on_tensors(numba.gradient_histogram)
graph_tree = on_tensors(numba.graph_tree)
grid_tree = on_tensors(numba.grid_tree)
look_up = on_tensors(numba.look_up)
nearest_sites = on_tensors(numba.nearest_sites)
position_histogram = on_tensors(numba.position_histogram)
recut = on_tensors(numba.recut)
refine = on_tensors(numba.refine)
region_boxes = on_tensors(numba.region_boxes)
region_tree = on_tensors(numba.region_tree)
saturate = on_tensors(numba.saturate)
scharr = on_tensors(numba.scharr)
superpixel_features = on_tensors(numba.superpixel_features)
superpixel_labels = on_tensors(numba.superpixel_labels)
superpixels = on_tensors(numba.superpixels)
tree_labels = on_tensors(numba.tree_labels)
_float32_features = on_tensors(numba.region_features)


def region_features(images: Tensor, table: Tensor | None, gradients: Tensor | None, labels: Tensor, offsets: Tensor,
                    boxes: Tensor, windows: Tensor, resolution: int, masked: bool, position: tuple[int, float],
                    texture: tuple[int, float], dtype: torch.dtype = torch.float32) -> Tensor:
    """See :func:`spit.kernels.reference.region_features`."""
    features: Tensor = _float32_features(images, table, gradients, labels, offsets, boxes, windows, resolution, masked,
                                         position, texture).to(dtype)
    return features
