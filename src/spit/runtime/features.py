"""φ on the array of one image: :class:`spit.FeatureExtractor` to float tolerance."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from spit.kernels import Array, numba
from spit.kernels.options import FeatureOptions
from spit.kernels.tables import normalization_table
from spit.kernels.windows import cell_weights, crops, squares
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
    gradients = _gradients(image[None], phi.gradient_contrast) if phi.gradients else None
    labels, offsets = found.labels[None], np.array([0, found.count])
    boxes = numba.region_boxes(labels, offsets) if found.frames is None else found.frames
    windows, shows = boxes, phi.fill in ("image", "crop")
    centroids = _centroids(found) if phi.fill == "crop" and found.frames is None else None
    if centroids is not None:
        corners = crops(centroids, phi.resolution, *labels.shape[1:]).astype(np.int32)
        windows = np.concatenate([corners, corners + phi.resolution], 1)
    elif shows and found.frames is None:
        windows = squares(boxes, *labels.shape[1:])
    values = numba.region_features(image[None], table, gradients, labels, offsets, boxes, windows, phi.resolution,
                                   not shows, position, texture)
    if centroids is not None and phi.position_sigma == 0:
        bins, first = np.arange(phi.position_bins, dtype=np.float32), phi.channels * phi.resolution**2
        places = (centroids + np.float32(0.5)) * np.float32(len(bins) / max(labels.shape[1:])) - np.float32(0.5)
        values[:, first : first + len(bins) ** 2] = cell_weights(places, bins, bins)
    if phi.fill == "mean":
        colors = numba.look_up(image[None], table)
        values[:, : phi.channels * phi.resolution**2] = _filled_colors(colors, labels, offsets, windows, phi.resolution)
    return values


def _centroids(found: Regions) -> Array:
    """The mean ``(y, x)`` of the pixels of each region, ``(N, 2)`` float32."""
    flat = found.labels.ravel()
    sums = [np.bincount(flat, axis.ravel(), found.count) for axis in np.indices(found.labels.shape)]
    centroids: Array = (np.stack(sums, 1) / np.bincount(flat, minlength=found.count)[:, None]).astype(np.float32)
    return centroids


def _gradients(images: Array, factor: float) -> Array:
    gradients = numba.scharr(images)
    if factor == 0:
        return gradients
    return (np.arcsinh(np.float32(factor) * gradients) / np.float32(math.asinh(factor))).astype(np.float32)


def _filled_colors(colors: Array, labels: Array, offsets: Array, windows: Array, resolution: int) -> Array:
    """Colour patches with the region's mean outside it, ``(N, C·K·K)``; see ``spit.features.color``."""
    planes = np.concatenate([colors, np.ones_like(colors[:, :1])], 1)
    samples = numba.color_patches(planes, labels, offsets, windows, resolution)
    patches, own = samples[:, :-1], samples[:, -1:]  # how much of each sample is the region's
    mean = patches.sum((2, 3), keepdims=True) / np.maximum(own.sum((2, 3), keepdims=True), 1e-6)
    filled: Array = patches + (1 - own) * mean
    return filled.reshape(len(windows), -1)
