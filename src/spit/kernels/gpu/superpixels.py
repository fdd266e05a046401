"""Superpixel contraction (§2.2) in Triton: ``reference.superpixels``, bit for bit, without a host
synchronisation between levels.

Regions of the batch are numbered end to end, image by image. How many there are is known on the
device alone: arrays are as long as they could have to be, grids cover that, and a program reads from
``offsets`` whether it has anything to do. Sums are integers, so the order of atomics does not matter;
neither does the order of an edge list, since a maximum has none.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.gpu.launch import BLOCK, EXACT, blocks, empty
from spit.kernels.gpu.selection import bound, merge_below
from spit.kernels.rules import SCALE, Levels, Rules

NOTHING = tl.constexpr(-(2**63))
PACKED_PIXELS = 2**20
"""Below this many pixels two sums of an image fit one 64-bit word."""


@dataclass
class Regions:
    """The regions of one level: as many as ``offsets[-1]`` says, in arrays of the capacity."""

    offsets: Tensor  # (B + 1,) int64
    words: Tensor  # (capacity, words) int64: sums of the features and the size, two to a word where they fit
    boxes: Tensor  # (capacity, 4) int32, used with compactness
    points: Tensor  # (capacity, C) float32
    keys: Tensor  # (capacity,) int64: the best edge so far
    squares: Tensor  # (B,) int64: Σ size²


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """See :func:`spit.kernels.reference.superpixels`."""
    contraction = Contraction(features.contiguous(), rules)
    for level in range(rules.levels):
        contraction.join_pixels() if level == 0 else contraction.join_regions()
    if rules.merge_threshold > 0:
        contraction.merge_below(rules.merge_threshold)
    if rules.max_tokens is not None:
        contraction.bound(rules.max_tokens)
    return contraction.levels()
