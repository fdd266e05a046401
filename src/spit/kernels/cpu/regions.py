"""Regions of a partition by compiled loops: boxes, and the way up a hierarchy."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from spit.kernels.cpu.threads import for_each_image
from spit.kernels.numba import regions


def check_labels(labels: Iterable[Tensor], offsets: Tensor, noun: str = "labels") -> None:
    """Raise ValueError if a loop would index outside its memory: labels can be changed after they were checked."""
    for image, count in zip(labels, offsets.diff().tolist(), strict=True):
        values = image.numpy()  # torch's threads would wait for more work on the cores that the loops need next
        low, high = values.min(), values.max()
        if low < 0 or high >= count:
            raise ValueError(f"expected {noun} 0 to {count - 1}, got {low} to {high}; they were changed after the "
                             "partition was made: make another one from them")


def region_boxes(labels: Tensor, offsets: Tensor, rows: int | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.region_boxes`."""
    check_labels(labels, offsets)
    total = int(offsets[-1])
    boxes = torch.zeros(total if rows is None else rows, 4, dtype=torch.int32)
    for_each_image(regions.boxes, labels, boxes[:total].split(offsets.diff().tolist()))
    return boxes


def compose(parents: Sequence[Tensor], offsets: Sequence[Tensor]) -> Tensor:
    """See :func:`spit.kernels.reference.compose`."""
    if len(parents) == 1:
        return parents[0]
    answer = torch.empty_like(parents[0])
    levels = [level.split(ends.diff().tolist()) for level, ends in zip(parents, offsets[:-1], strict=True)]
    for level, above in zip(levels, offsets[1:], strict=True):
        check_labels(level, above, "parents")
    for_each_image(lambda *images: regions.climb(images[:-1], images[-1]), *levels,
                   answer.split(offsets[0].diff().tolist()))
    return answer
