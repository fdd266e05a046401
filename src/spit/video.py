"""Superpixels of the frames of a video, with labels that stay where nothing moves."""

from collections.abc import Iterable, Iterator
from os import PathLike

import numpy as np
import numpy.typing as npt

from spit.arrays import SWEEPS, superpixels
from spit.bands import Axis, channels_first, eight_bits
from spit.kernels import Array, numba
from spit.kernels.numba.contraction import adjacency, sum_pixels
from spit.kernels.numba.tree import cluster
from spit.kernels.options import TREE_COMPACTNESS
from spit.kernels.rules import tree_weights
from spit.labels.borders import connected_pieces

LEAST, NOISE = 3, 6  # a pixel changed by more than LEAST + NOISE times the median change, which is 4σ of noise
TEXTURE = 0.58  # the median change is at most so many times the median second difference, as noise would make it
SETTLED, FAR = 20, 3  # a region is as it was where one pixel in SETTLED changed, by up to FAR times as much
SCENE = 4  # a frame of which less than one pixel in so many is as it was is another scene
ROUNDS = 2  # of the tree, the most eager, are left out: between regions and pixels they join the wrong ones
HEIR = 4  # a region takes a number over if at least one in so many of its pixels had it


def superpixels_video(frames: Iterable[npt.ArrayLike], n: int = 600, *, compactness: float = TREE_COMPACTNESS,
                      channel_axis: Axis = "auto", refine: int | None = None) -> Iterator[npt.NDArray[np.int32]]:
    """Label the superpixels of each frame of a video; a region that persists keeps its number.

    The first frame has the labels of :func:`superpixels`. Of each further frame:

    1. It is compared with what was seen before, once at rest and once moved by whole rows and columns (the peak of the
       phase correlation); what fits better is kept. A pixel persists if it changed by at most four standard deviations
       of the noise, which the median change tells. So noise moves no border.
    2. If all pixels persist, so do the labels. If hardly any does, it is a new scene, and all numbers are new.
    3. Else a tree grows from what persists of each region, one node each, and from the pixels that changed. It is cut
       at n again, so that new content gets as many regions as it is worth, and two others join for each.
    4. A region takes over the number that most of its persisting pixels had. One sweep over the boundary pixels
       follows, as in :func:`superpixels`.

    Args:
        frames: ``(H, W)`` or ``(H, W, C)`` arrays of one size, such as ``imageio.v3.imiter(path)`` yields, or an array
            of them. Each is read once, when its labels are asked for, and not modified.
        n: exact number of superpixels in each frame.
        compactness: as for :func:`superpixels`, as are ``channel_axis`` and ``refine``.

    Yields:
        ``(H, W)`` int32 labels of each frame; every region is 4-connected. Numbers start at 1, and those of regions
        that end are not used again, so that they are 1 to n in the first frame alone.
        ``skimage.segmentation.relabel_sequential`` makes them so in any.

    Raises:
        TypeError: frames are a path.
        ValueError: frames are a single image, or one has another size than the first.

    Example:
        >>> import numpy, spit
        >>> still = numpy.zeros((30, 40, 3), numpy.uint8)
        >>> moved = still.copy()
        >>> moved[10:20, 10:20] = 255
        >>> first, second = spit.superpixels_video([still, moved], n=12)
        >>> int(first.max()), len(numpy.unique(second)), int(second.max()) > 12
        (12, 12, True)
    """
    if isinstance(frames, str | PathLike):
        raise TypeError(f"expected frames, got the path {str(frames)!r}; read it with imageio.v3.imiter first")
    if isinstance(frames, np.ndarray) and (frames.ndim < 3 or (frames.ndim == 3 and frames.shape[2] <= 4)):
        raise ValueError(f"expected frames, got an image of shape {frames.shape}; give [image] if it is one frame")
    return _label(frames, n, compactness, channel_axis, refine)


def _label(frames: Iterable[npt.ArrayLike], n: int, compactness: float, channel_axis: Axis,
           refine: int | None) -> Iterator[npt.NDArray[np.int32]]:
    seen: Array = np.empty(0)  # the last frame without its noise, see _hold
    regions: Array = np.empty(0)  # its regions from 0
    names: Array = np.empty(0)  # their labels
    last = 0  # the largest label so far
    for number, frame in enumerate(frames):
        planes = np.ascontiguousarray(eight_bits(channels_first(frame, channel_axis)))
        if number > 0 and planes.shape != seen.shape:
            raise ValueError(f"expected frames of {seen.shape[1]}×{seen.shape[2]} with {len(seen)} channels like the "
                             f"first, got {planes.shape[1]}×{planes.shape[2]} with {len(planes)} at place {number}")
        if number > 0:
            seen, before, kept = _hold(seen, regions, planes)
        if number == 0 or SCENE * kept.sum() < kept.size:
            seen = planes.copy()
            regions = superpixels(frame, n, compactness=compactness, channel_axis=channel_axis, refine=refine) - 1
            names = np.zeros(int(regions.max()) + 1, np.int32)
        elif not kept.all():
            cut, names = _cut(seen, before, kept, names, n, compactness)
            sweeps = SWEEPS * (compactness < 1) if refine is None else refine
            regions = numba.refine(cut[None], np.array([0, len(names)]), seen[None], min(sweeps, 1))[0]
        new = names == 0
        names[new] = np.arange(last + 1, last + 1 + new.sum())
        last += int(new.sum())
        yield names[regions]


def _hold(seen: Array, regions: Array, planes: Array) -> tuple[Array, Array, Array]:
    """What was seen and its regions, both moved with the frame, and which pixels persist; what does not is renewed.

    Where few pixels of a region changed by little, what was seen stays, so that such changes add up. If all persist,
    nothing is renewed, for the same reason; else what persists follows the frame at a distance of half the noise.
    """
    shift, most = _motion(seen, planes)
    seen, regions, pixels = np.roll(seen, shift, (1, 2)), np.roll(regions, shift, (0, 1)), planes.astype(np.int16)
    inside = np.ones(regions.shape, np.bool_)
    for axis, steps in enumerate(shift):
        np.moveaxis(inside, axis, 0)[slice(steps) if steps >= 0 else slice(steps, None)] = False
    gaps = np.abs(pixels - seen).max(0)
    same = (gaps <= most) & inside
    changed = np.bincount(regions[~same], minlength=int(regions.max()) + 1)
    settled = SETTLED * changed <= np.bincount(regions.ravel())
    kept = same | settled[regions] & inside & (gaps <= FAR * most)
    if not kept.all():
        near = np.clip(seen, pixels - most // 2, pixels + most // 2)
        seen = np.where(same, near, np.where(kept, seen, pixels)).astype(planes.dtype)
    return seen, regions, kept


def _motion(seen: Array, planes: Array) -> tuple[tuple[int, int], int]:
    """By how many rows and columns the frame moved, and the largest change that noise explains."""
    thin = (slice(None), slice(None, None, 4), slice(None, None, 4))  # enough pixels for a median
    pixels, rows = planes[thin].astype(np.int16), planes[:, ::8].astype(np.int16)
    bends = np.diff(rows, 2, prepend=rows[..., :1], append=rows[..., -1:])
    gaps = {(0, 0): np.abs(pixels - seen[thin])}
    noise = min(np.median(gaps[0, 0]), TEXTURE * np.median(np.abs(bends)))
    if np.mean(gaps[0, 0] <= LEAST + NOISE * noise) < 0.95:
        height, width = planes.shape[1:]
        first, second = (np.fft.rfft2(image.sum(0, dtype=np.float32)) for image in (seen, planes))
        cross = second * first.conj()
        peak = np.fft.irfft2(cross / np.maximum(np.abs(cross), 1e-9), (height, width)).argmax()
        y, x = divmod(int(peak), width)
        shift = (y - height * (2 * y > height), x - width * (2 * x > width))
        gaps[shift] = np.abs(pixels - np.roll(seen, shift, (1, 2))[thin])
        noise = min(noise, np.median(gaps[shift]))
    most = int(LEAST + NOISE * noise)
    return max(gaps, key=lambda shift: np.mean(gaps[shift] <= most)), most


def _cut(pixels: Array, before: Array, kept: Array, names: Array, n: int, compactness: float) -> tuple[Array, Array]:
    """Regions from 0 of the tree that grows from what persists of each region and from single pixels; their labels."""
    places = np.arange(len(names), len(names) + kept.size, dtype=np.int32).reshape(kept.shape)
    pieces, owners = connected_pieces(np.where(kept, before, places) + np.int32(1))
    nodes, owners = np.ascontiguousarray(pieces[1:-1, 1:-1]) - np.int32(1), owners[1:] - np.int32(1)
    bands = np.concatenate([numba.tree_colors(pixels[None])[0], np.indices(kept.shape, np.int16)])
    sums, _ = sum_pixels(bands, nodes, len(owners), False)
    # Without positions flat areas would be one; so they count even where compactness is 0.
    weights = np.array(tree_weights(len(pixels), max(compactness, TREE_COMPACTNESS)))
    roots = np.arange(len(owners), dtype=np.int32)
    parents, heights = roots.copy(), np.full(len(roots), np.inf, np.float32)
    cluster(adjacency(nodes), sums, roots, np.zeros_like(roots), weights, (parents, heights.view(np.int32)), ROUNDS)
    cut = numba.cut_tree(parents, heights, min(n, len(roots)))
    return cut[nodes], _inherit(cut, owners, sums[:, -1], names)


def _inherit(cut: Array, owners: Array, sizes: Array, names: Array) -> Array:
    """The label of the region that each new one shares most pixels with, if it takes it over, else 0.

    ``cut`` has the new region of each node of the tree, and ``owners`` the one before, or more than all for none.
    """
    areas, held = np.bincount(cut, sizes), owners < len(names)
    pairs, places = np.unique(cut[held] * np.int64(len(names)) + owners[held], return_inverse=True)
    shared = np.bincount(places, sizes[held])
    new, old = np.divmod(pairs, len(names))
    order = np.argsort(shared, kind="stable")
    order = order[HEIR * shared[order] >= areas[new[order]]]
    parents, heirs = np.full(len(areas), -1), np.full(len(names), -1)
    parents[new[order]], heirs[old[order]] = old[order], new[order]  # the last, which shares most, stays
    return np.where(heirs[parents] == np.arange(len(areas)), names[parents], 0).astype(np.int32)
