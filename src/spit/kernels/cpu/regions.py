"""Regions of a partition as compiled loops: boxes, and the way up a hierarchy."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from spit.kernels.cpu.compilation import compiled
from spit.kernels.cpu.threads import Array, for_each_image


def check_labels(labels: Tensor, offsets: Tensor) -> None:
    """Raise ValueError if a loop would index outside its memory: labels can be changed after they were checked."""
    counts = offsets.diff()
    for image, count in zip(labels.detach(), counts.tolist(), strict=True):
        low, high = image.aminmax()
        if int(low) < 0 or int(high) >= count:
            raise ValueError(f"expected labels 0 to {count - 1}, got {int(low)} to {int(high)}; they were changed "
                             "after the partition was made: make another one from them")


def region_boxes(labels: Tensor, offsets: Tensor, rows: int | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.region_boxes`."""
    check_labels(labels, offsets)
    total = int(offsets[-1])
    boxes = torch.zeros(total if rows is None else rows, 4, dtype=torch.int32)
    for_each_image(_boxes, labels, boxes[:total].split(offsets.diff().tolist()))
    return boxes


def compose(parents: Sequence[Tensor], offsets: Sequence[Tensor]) -> Tensor:
    """See :func:`spit.kernels.reference.compose`."""
    if len(parents) == 1:
        return parents[0]
    answer = torch.empty_like(parents[0])
    images = zip(*(level.split(ends.diff().tolist()) for level, ends in zip(parents, offsets[:-1], strict=True)),
                 answer.split(offsets[0].diff().tolist()), strict=True)
    for_each_image(lambda *levels: climb(levels[:-1], levels[-1]), *map(tuple, zip(*images, strict=True)))
    return answer


def climb(levels: Sequence[Array], out: Array) -> None:
    """:func:`compose` of one image."""
    upper = levels[-1]
    # From the coarse end: only the last step is as long as the image.
    for lower in levels[-2:0:-1]:
        above = np.empty_like(lower)
        _climb(lower, upper, above)
        upper = above
    if len(levels) > 1:
        _climb(levels[0], upper, out)
    else:
        out[...] = upper


@compiled
def _climb(lower: Array, upper: Array, out: Array) -> None:
    for v in range(len(lower)):
        out[v] = upper[lower[v]]


@compiled
def _boxes(labels: Array, out: Array) -> None:
    height, width = labels.shape
    for v in range(len(out)):
        out[v, 0], out[v, 1], out[v, 2], out[v, 3] = height, width, 0, 0
    for y in range(height):
        start = 0
        while start < width:  # a run of one label at a time
            label = labels[y, start]
            end = start + 1
            while end < width and labels[y, end] == label:
                end += 1
            box = out[np.uint64(label)]
            box[0] = min(box[0], y)
            box[1] = min(box[1], start)
            box[2] = y + 1
            box[3] = max(box[3], end)
            start = end
    for v in range(len(out)):
        if out[v, 2] == 0:  # without a pixel
            out[v, 0], out[v, 1] = 0, 0
