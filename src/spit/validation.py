"""Checks of partitions and hierarchies that come from outside, before a compiled kernel sees them (contract 8)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from spit.wording import plural

SHOWN = 6  # items of a batch that a message shows
LabelMap = Tensor | npt.NDArray[Any]


def check_labels(blocks: Any, offsets: Any) -> tuple[tuple[Tensor, ...], Tensor]:
    """The blocks as int32 and the offsets as int64, if they describe a partition."""
    if not isinstance(blocks, list | tuple) or not blocks:
        raise TypeError(f"expected a tuple of (b, H, W) label maps, got {_described(blocks)}; "
                        "use Partition.of(labels, counts) or Partition.from_labels(labels)")
    blocks = [integers("labels", block, 3) for block in blocks]
    maps = [labels for block in blocks for labels in block]
    offsets = check_offsets(offsets, len(maps), blocks[0].device)
    for image, (labels, count) in enumerate(zip(maps, offsets.diff().tolist(), strict=True)):
        if labels.numel() == 0 or labels.device != offsets.device:
            raise ValueError(f"expected label maps with pixels, all on one device, got {tuple(labels.shape)} on "
                             f"{labels.device} and offsets on {offsets.device}")
        found = labels.long().unique().tolist()
        if found[0] < 0 or found[-1] >= count:
            shift = found[0] if 0 < found[0] == found[-1] - count + 1 else 0
            hint = f"labels start at {shift}: subtract {shift}, or use" if shift else "use"
            raise ValueError(f"expected labels 0 to {count - 1} in image {image}, which has {plural(count, 'region')}, "
                             f"got {found[0]} to {found[-1]}; {hint} Partition.from_labels(labels), which numbers them")
        if len(found) < count:
            missing = next(label for label, seen in enumerate([*found, -1]) if label != seen)
            raise ValueError(f"expected a pixel in every region, got none in region {missing} of image {image}; use "
                             "Partition.from_labels(labels), which leaves no gaps")
    # Copies: a caller who changes his own labels later must not change what kernels index with.
    return tuple(block.to(torch.int32, copy=True) for block in blocks), offsets.clone()


def check_offsets(offsets: Any, images: int, device: torch.device) -> Tensor:
    """The offsets as int64, if they start at 0 and never decrease."""
    starts = integers("offsets", offsets, 1).long()
    if starts.device != device:
        raise ValueError(f"expected labels and offsets on one device, got {device} and {starts.device}")
    if len(starts) != images + 1 or int(starts[0]) != 0 or bool((starts.diff() < 0).any()):
        raise ValueError(f"expected {images + 1} offsets for {plural(images, 'image')}, from 0 and never decreasing, "
                         f"got {few(starts.tolist())}; Partition.of(labels, counts) makes them from counts")
    return starts


def check_frames(frames: Any, boxes: Tensor) -> Tensor:
    """The frames as int32, if each contains the box of its region."""
    given = integers("frames", frames, 2)
    if given.shape != boxes.shape or given.device != boxes.device:
        raise ValueError(f"expected frames (y0, x0, y1, x1) of shape {tuple(boxes.shape)} on {boxes.device}, got "
                         f"{tuple(given.shape)} on {given.device}")
    bad = (given[:, :2] > boxes[:, :2]) | (given[:, 2:] < boxes[:, 2:]) | (given.abs().amax(1, True) >= 2**30)
    if bool(bad.any()):
        row = int(bad.any(1).nonzero()[0])
        raise ValueError(f"expected frames (y0, x0, y1, x1) that contain the boxes of their regions, got "
                         f"{given[row].tolist()} for {boxes[row].tolist()}, row {row}")
    return given.to(torch.int32, copy=True)


def integers(name: str, values: Any, *dimensions: int) -> Tensor:
    """A tensor of integers with one of these numbers of dimensions; arrays are converted."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        values = torch.from_numpy(values.astype(np.int64))
    if (not isinstance(values, Tensor) or values.dtype == torch.bool or values.is_floating_point()
            or values.is_complex()):
        raise TypeError(f"expected {name} as a tensor of integers, got {_described(values)}")
    if values.ndim not in dimensions:
        raise ValueError(f"expected {name} with {' or '.join(map(str, dimensions))} dimensions, got shape "
                         f"{tuple(values.shape)}")
    return values


def few(counts: Sequence[int]) -> str:
    """The first counts of a batch, ``[3, 2, … 4 more]``."""
    more = f", … {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
    return f"[{', '.join(map(str, counts[:SHOWN]))}{more}]"


def _described(values: object) -> str:
    return f"{type(values).__name__} of {values.dtype}" if hasattr(values, "dtype") else type(values).__name__
