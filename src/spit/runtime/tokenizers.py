"""τ on the array of one image: the labels of ``spit.tokenizers``, bit for bit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spit.kernels import Array, tables
from spit.kernels.numba import preprocess, refinement, voronoi
from spit.kernels.numba.graph import superpixel_labels
from spit.kernels.options import PatchOptions, SuperpixelOptions, VoronoiOptions
from spit.kernels.rules import FRACTION
from spit.options import check_choice

PRESET = ("preset", "spit")  # which versions before 0.2 wrote among the options
GOLDEN = 0x9E3779B97F4A7C15
WORD = 2**64


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


def _superpixels(image: Array, options: SuperpixelOptions) -> Regions:
    pixels = image
    if options.features == "saturated" or len(pixels) == 1:
        pixels = np.ascontiguousarray(np.broadcast_to(pixels, (3, *pixels.shape[1:])))
    planes = preprocess.convert(pixels, tables.contrast_table(len(pixels)))
    if options.features == "saturated":
        saturated = np.empty_like(planes)
        preprocess.saturate(planes, round(tables.SATURATION * 2**FRACTION), saturated)
        planes = saturated
    diffused = np.empty_like(planes)
    preprocess.diffuse(planes, tables.flux_table(), tables.DIFFUSION_STEPS, diffused)
    labels = np.empty(image.shape[1:], np.int32)
    count = superpixel_labels(diffused, options.rules(), labels)
    if options.refine > 0:
        refined = np.empty_like(labels)
        refinement.refine(labels, count, image, options.refine, refined)
        labels = refined
    return Regions(labels, count)


def _cells(image: Array, options: VoronoiOptions) -> Regions:
    height, width = image.shape[1:]
    count = options.count(height, width)
    weights = _mix(np.arange(1, image.size + 1, dtype=np.uint64))
    fingerprint = (weights * image.reshape(-1)).sum() + np.array([options.seed * GOLDEN % WORD], np.uint64)
    sites = _draw_sites(fingerprint, count, height * width)
    places = np.stack([sites // width, sites % width], 1).astype(np.int32)
    labels = np.empty((height, width), np.int32)
    voronoi.nearest(places, labels)
    voronoi.settle(places, labels)
    return Regions(labels, count)


def _draw_sites(fingerprint: Array, cells: int, pixels: int) -> Array:
    """Distinct pixels in raster order, as ``spit.tokenizers.voronoi`` draws them, ``(cells,)``."""
    if 2 * cells > pixels:
        first: Array = np.argsort(_draws(fingerprint, pixels), kind="stable")[:cells]
        return np.sort(first)
    draws = 2 * cells
    while True:
        drawn = (_draws(fingerprint, draws) % np.uint64(pixels)).astype(np.int64)
        order = np.argsort(drawn, kind="stable")
        candidates = drawn[order]
        order[1:][candidates[1:] == candidates[:-1]] = draws  # drawn before
        sites: Array = candidates[order <= np.sort(order)[cells - 1]]
        if len(sites) == cells:
            return sites
        draws *= 2  # which leaves the first draws, and what was enough, as they are


def _draws(fingerprint: Array, count: int) -> Array:
    return _mix(fingerprint + np.arange(count, dtype=np.uint64))


def _mix(x: Array) -> Array:
    """SplitMix64, see ``spit.tokenizers.voronoi``."""
    x = (x + np.uint64(1)) * np.uint64(GOLDEN)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = x ^ (x >> np.uint64(31))
    return mixed


_TOKENIZERS: dict[str, tuple[Any, Callable[[Array, Any], Regions]]] = {
    "patch": (PatchOptions, _patches), "voronoi": (VoronoiOptions, _cells),
    "superpixel": (SuperpixelOptions, _superpixels)}
