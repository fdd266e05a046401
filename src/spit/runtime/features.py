"""φ on the array of one image: :class:`spit.FeatureExtractor` to float tolerance."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba import features, regions
from spit.kernels.numba.histograms import gradient_counter, position_counter
from spit.kernels.numba.preprocess import convert
from spit.kernels.options import FeatureOptions
from spit.kernels.tables import normalization_table
from spit.runtime.tokenizers import Regions, without_preset

Extractor = Callable[[Array, Regions], Array]


def make_extractor(options: dict[str, Any]) -> Extractor:
    """A function from an image, ``(C, H, W)`` uint8, and its regions to their features, ``(N, F)`` float32."""
    phi = FeatureOptions.from_dict(without_preset(options), "option of the features")
    return lambda image, found: _extract(image, found, phi)


def _extract(image: Array, found: Regions, phi: FeatureOptions) -> Array:
    if len(image) != phi.channels:
        raise ValueError(f"expected an image of {phi.channels} channels, got shape {image.shape}")
    position, texture = (phi.position_bins, phi.position_sigma), (phi.gradient_bins, phi.gradient_sigma)
    table = normalization_table(phi.normalization, phi.channels)
    gradients = _gradients(image, phi.gradient_contrast) if phi.gradients else None
    if found.frames is None:
        windows = np.empty((found.count, 4), np.int32)
        regions.boxes(found.labels, windows)
        if phi.fill == "image":
            windows = _squares(windows, *found.labels.shape)
    else:
        windows = found.frames
    width = features.feature_width(phi.channels, phi.resolution, position, None if gradients is None else texture)
    values = np.empty((found.count, width), np.float32)
    if phi.fill != "mean":
        describe = features.describer(found.labels.shape, table, phi.resolution, phi.fill == "zero", position, texture)
        describe(image, found.labels, windows, gradients, values)
        return values
    columns = phi.channels * phi.resolution**2
    values[:, :columns] = _filled_colors(convert(image, table), found, windows, phi.resolution)
    sizes = position_counter(found.labels.shape, *position)(found.labels, values, columns)
    if gradients is not None:
        gradient_counter(*texture)(gradients, found.labels, sizes, values, columns + position[0] ** 2)
    return values


def _gradients(image: Array, factor: float) -> Array:
    gradients = np.empty((2, *image.shape[1:]), np.float32)
    features.scharr(image, 255, gradients)
    if factor == 0:
        return gradients
    return (np.arcsinh(np.float32(factor) * gradients) / np.float32(math.asinh(factor))).astype(np.float32)


def _filled_colors(colors: Array, found: Regions, windows: Array, resolution: int) -> Array:
    """Colour patches with the region's mean outside it, ``(N, C·K·K)``; see ``spit.features.color``."""
    planes = np.concatenate([colors, np.ones_like(colors[:1])])
    samples = np.empty((found.count, len(planes) * resolution**2), np.float32)
    features.sample_colors(planes, samples, found.labels, windows, True, *features.scratch(resolution))
    patches = samples.reshape(found.count, len(planes), -1)
    own = patches[:, -1:]  # how much of each sample is the region's
    mean = patches[:, :-1].sum(2, keepdims=True) / np.maximum(own.sum(2, keepdims=True), 1e-6)
    filled: Array = patches[:, :-1] + (1 - own) * mean
    return filled.reshape(found.count, -1)


def _squares(boxes: Array, height: int, width: int) -> Array:
    """The square around each box, moved into the image if it fits; see ``spit.features.color``."""
    start = boxes[:, :2]
    sides = boxes[:, 2:] - start
    side = sides.max(1, keepdims=True)
    last = np.concatenate([height - side, width - side], 1)
    corner = np.maximum(np.minimum(start - (side - sides >> 1), last), 0)
    return np.concatenate([corner, corner + side], 1).astype(np.int32)
