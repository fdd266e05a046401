"""φ in numba: the functions of ``reference/features.py``, one image per thread."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from spit.kernels import Array
from spit.kernels.cpu.preprocess import look_up
from spit.kernels.cpu.regions import check_labels
from spit.kernels.cpu.threads import for_each_image
from spit.kernels.numba import features as loops
from spit.kernels.numba.features import describer, feature_width
from spit.kernels.numba.histograms import gradient_counter, position_counter
from spit.kernels.sampling import differentiable, side_by_side


def region_features(images: Tensor, table: Tensor | None, gradients: Tensor | None, labels: Tensor, offsets: Tensor,
                    boxes: Tensor, windows: Tensor, resolution: int, masked: bool, position: tuple[int, float],
                    texture: tuple[int, float], dtype: torch.dtype = torch.float32) -> Tensor:
    """See :func:`spit.kernels.reference.region_features`."""
    check_labels(labels, offsets)
    if (torch.is_grad_enabled() and images.requires_grad) or torch.float64 in (images.dtype, dtype):
        return _side_by_side(images, table, gradients, labels, offsets, boxes, windows, resolution, masked, position,
                             texture, dtype)
    curves = None if table is None else table.numpy()
    describe = describer(labels.shape[1:], curves, resolution, masked, position, texture)
    columns = feature_width(images.shape[1], resolution, position, None if gradients is None else texture)
    # From numpy, which asks for large pages: the first touch of small ones takes a fifth of the time of a batch.
    values = torch.from_numpy(np.empty((int(offsets[-1]), columns), np.float32))
    counts = offsets.diff().tolist()
    for_each_image(describe, images, labels, windows.split(counts), gradients, values.split(counts))
    return values.to(dtype)


def position_histogram(labels: Tensor, offsets: Tensor, bins: int, sigma: float, boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.position_histogram`."""
    check_labels(labels, offsets)
    histogram = torch.empty(int(offsets[-1]), bins * bins)
    count = position_counter(labels.shape[1:], bins, sigma)
    for_each_image(count, labels, histogram.split(offsets.diff().tolist()), 0)
    return histogram


def gradient_histogram(gradients: Tensor, labels: Tensor, offsets: Tensor, bins: int, sigma: float,
                       boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.gradient_histogram`."""
    check_labels(labels, offsets)
    histogram = torch.empty(int(offsets[-1]), bins * bins)
    count_gradients = gradient_counter(bins, sigma)

    def count(gradients: Array, labels: Array, out: Array) -> None:
        count_gradients(gradients, labels, np.bincount(labels.reshape(-1), minlength=len(out)), out, 0)

    for_each_image(count, gradients, labels, histogram.split(offsets.diff().tolist()))
    return histogram


def scharr(images: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.scharr`."""
    dtype, white = (torch.float32, 255) if images.dtype == torch.uint8 else (images.dtype, 1)
    batch, _, height, width = images.shape
    gradients = torch.empty(batch, 2, height, width, dtype=dtype)
    for_each_image(loops.scharr, images, white, gradients)
    return gradients


def _sample(images: Tensor, patches: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, masked: bool,
            adjoint: bool) -> None:
    counts = offsets.diff().tolist()
    loop = loops.sample_adjoint if adjoint else loops.sample_colors

    def sample(*given: Any) -> None:
        loop(*given, *loops.scratch(patches.shape[-1]))

    for_each_image(sample, images, patches.flatten(1).split(counts), labels, boxes.split(counts), masked)


color_patches = differentiable(_sample)
_side_by_side = side_by_side(look_up, color_patches, position_histogram, gradient_histogram)
