"""The operations without compiled loops, and with their bits, for the first calls of a fresh install.

The reference has them already, except for histograms: the last bits of a sum of floats depend on the order, and the
reference takes every kernel with its tails. In numpy, these add the same products in the same order as the loops of
``histograms.py``.
"""
# ruff: noqa: F401  (the dispatch looks operations up by name)

import numpy as np
import torch
from torch import Tensor

from spit.kernels import Array
from spit.kernels.cpu import features
from spit.kernels.numba import histograms
from spit.kernels.numba.histograms import RIM
from spit.kernels.reference import (
    between,
    color_patches,
    compose,
    diffuse,
    look_up,
    nearest_sites,
    refine,
    region_boxes,
    saturate,
    scharr,
    superpixel_labels,
    superpixels,
)
from spit.kernels.sampling import side_by_side

ROWS = 64  # of the image at once


def position_histogram(labels: Tensor, offsets: Tensor, bins: int, sigma: float, boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.position_histogram`."""
    height, width = labels.shape[1:]
    weights, low, high = histograms.position_weights(height, max(height, width), bins, sigma)
    sums, first, last = histograms.position_sums(width, max(height, width), bins, sigma)
    columns = np.arange(bins)
    answers = []
    for image, count in zip(labels.numpy(), offsets.diff().tolist(), strict=True):
        histogram = np.zeros(count * bins * bins)
        for y, row in enumerate(image):
            starts = np.flatnonzero(np.diff(row, prepend=-1))
            ends = np.append(starts[1:], width)
            near = (columns >= first[starts][:, None]) & (columns <= last[ends - 1][:, None])
            runs = np.where(near, sums[ends] - sums[starts], 0.0)  # (R, K)
            rows = columns[low[y] : high[y] + 1]
            own = row[starts].astype(np.int64)[:, None, None]
            places = (own * bins + rows[:, None]) * bins + columns  # (R, rows, K)
            np.add.at(histogram, places.reshape(-1), (weights[y, rows][:, None] * runs[:, None]).reshape(-1))
        answers.append(_means(histogram.reshape(count, -1), image))
    return torch.from_numpy(np.concatenate(answers))


def gradient_histogram(gradients: Tensor, labels: Tensor, offsets: Tensor, bins: int, sigma: float,
                       boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.gradient_histogram`."""
    if not histograms.reaches_four(bins, sigma):
        return features.gradient_histogram(gradients, labels, offsets, bins, sigma)
    table = histograms.four_weights(0.5 * bins * sigma).reshape(-1, 4)
    wide = bins + 2 * RIM
    answers = []
    for planes, image, count in zip(gradients.numpy(), labels.numpy(), offsets.diff().tolist(), strict=True):
        histogram = np.zeros(count * wide * wide)
        for y in range(0, len(image), ROWS):
            values = planes[:, y : y + ROWS].reshape(2, -1).astype(np.float64)
            place = (values + 1.0) * (0.5 * bins) + (RIM - 0.5)  # (2, P)
            corner = place.astype(np.int64).clip(1, bins + 1)
            rest = place - corner
            step = rest * (len(table) - 2)
            index = step.astype(np.int64).clip(0, len(table) - 2)
            kernels = table[index] + (step - index)[..., None] * (table[index + 1] - table[index])  # (2, P, 4)
            first = (image[y : y + ROWS].reshape(-1) * np.int64(wide) + corner[0] - 1) * wide + corner[1] - 1
            places = first[:, None, None] + np.arange(4)[:, None] * wide + np.arange(4)  # (P, 4, 4)
            np.add.at(histogram, places.reshape(-1), (kernels[0, :, :, None] * kernels[1, :, None]).reshape(-1))
        inside = histogram.reshape(count, wide, wide)[:, RIM:-RIM, RIM:-RIM]
        answers.append(_means(inside.reshape(count, -1), image))
    return torch.from_numpy(np.concatenate(answers))


def _means(histogram: Array, labels: Array) -> Array:
    sizes = np.bincount(labels.reshape(-1), minlength=len(histogram)).clip(1)
    return (histogram / sizes[:, None]).astype(np.float32)


region_features = side_by_side(look_up, color_patches, position_histogram, gradient_histogram)
