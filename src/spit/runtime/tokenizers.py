"""τ on the array of one image: the labels of ``spit.tokenizers``, bit for bit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spit.arrays import cut
from spit.kernels import Array, numba
from spit.kernels.options import PatchOptions, SuperpixelOptions, VoronoiOptions
from spit.options import check_choice

PRESET = ("preset", "spit")  # which versions before 0.2 wrote among the options


@dataclass(frozen=True, eq=False)
class Regions:
    """The partition of one image.

    Shape:
        labels ``(H, W)`` int32; frames ``(N, 4)`` int32 or None, see :class:`spit.Partition`.
    """

    labels: Array
    count: int
    frames: Array | None = None


Tokenizer = Callable[[Array], Regions]


def make_tokenizer(name: str, options: dict[str, Any]) -> Tokenizer:
    """A function from an image, ``(C, H, W)`` uint8 and contiguous, to its regions."""
    hint = "spit.runtime has no tokenizers of your own: use spit.load, with torch"
    check_choice("tokenizer", name, _TOKENIZERS, hint)
    kind, cut = _TOKENIZERS[name]
    given = kind.from_dict(without_preset(options), "option of the tokenizer")
    return lambda image: cut(image, given)


def without_preset(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a file, also one that a version before 0.2 wrote."""
    return dict(item for item in options.items() if item != PRESET)


def _patches(image: Array, options: PatchOptions) -> Regions:
    height, width = image.shape[1:]
    side, columns = options.size, -(-width // options.size)
    labels = np.arange(height, dtype=np.int32)[:, None] // side * columns + np.arange(width, dtype=np.int32) // side
    count = -(-height // side) * columns
    number = np.arange(count, dtype=np.int32)
    corners = np.stack([number // columns, number % columns], 1) * side
    return Regions(labels.astype(np.int32), count, np.concatenate([corners, corners + side], 1).astype(np.int32))


def _cells(image: Array, options: VoronoiOptions) -> Regions:
    count = options.count(*image.shape[1:])
    sites = numba.draw_sites(image[None], count, options.seed)
    return Regions(numba.nearest_sites(sites, *image.shape[1:])[0], count)


_TOKENIZERS: dict[str, tuple[Any, Callable[[Array, Any], Regions]]] = {
    "patch": (PatchOptions, _patches), "voronoi": (VoronoiOptions, _cells),
    "superpixel": (SuperpixelOptions, lambda image, options: Regions(*cut(image, options)))}
