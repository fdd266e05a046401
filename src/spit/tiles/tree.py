"""The tree of all parts of an image, and its cut."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spit.kernels import Array
from spit.kernels.numba.tree import cluster
from spit.kernels.numba.tree_rounds import INFINITY
from spit.kernels.rules import EAGER
from spit.tiles.parts import Parts, highest

LARGEST = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Cut:
    """A cut through the tree of an image.

    Attributes:
        cutoff: merges whose keys are as high are undone.
        roots: the number of the last region that each region of the first rounds is in.
        offsets: the number of the first region of each part, and at the end that of all.
    """

    cutoff: int
    roots: Array
    offsets: Array

    @staticmethod
    def of(parts: Parts, n: int) -> "Cut":
        """The cut into ``n`` regions, or as near as the tree has."""
        names, tops, sums, edges, merges, offsets, pixels = _gather(parts)
        if len(names) == 0:
            raise ValueError("expected at least one pixel with data in every band and in the mask, got none")
        points = np.sort(names)
        numbers = np.searchsorted(points, names).astype(np.int32)  # in the order of names
        parents, heights = np.arange(len(names), dtype=np.int32), np.full(len(names), INFINITY, np.int32)
        cluster(edges, sums, numbers, tops, parts.weights, (parents, heights), len(EAGER), points)
        keys = heights.astype(np.int64) << 32 | points
        joined = heights != INFINITY
        fewest = len(names) - int(joined.sum())
        undone = min(max(n, fewest), int(pixels)) - fewest
        kept = highest(np.concatenate([merges, keys[joined]]), undone)
        cutoff = int(kept.min()) if undone > 0 else LARGEST
        pointers = np.where(keys < cutoff, parents, np.arange(len(names), dtype=np.int32))
        while not np.array_equal(pointers, further := pointers[pointers]):
            pointers = further
        return Cut(cutoff, pointers[numbers], offsets)


def number_regions(parts: Parts, cut: Cut, start_label: int) -> list[Array]:
    """The labels of the regions of each part, after them that of pixels outside. Rewrites parts that were cut."""
    count, roots, firsts = len(cut.roots), [], []
    for part, (first, last) in enumerate(zip(cut.offsets[:-1], cut.offsets[1:], strict=True)):
        with np.load(parts.file(part)) as stored:
            own, points, undone = cut.roots[first:last], stored["firsts"], stored["merges"] >= cut.cutoff
            parts.cut_file(part).unlink(missing_ok=True)  # of a run that was stopped
            if undone.any():
                regions, seeds = parts.cut(part, cut.cutoff)
                np.save(parts.cut_file(part), regions)
                block = stored["labels"].ravel()[seeds]
                new = stored["names"][block] != parts.numbers(part, seeds)
                points = parts.firsts(part, regions, len(seeds))
                own = np.where(new, count + new.cumsum() - 1, own[block])
                count += int(new.sum())
        roots.append(own)
        firsts.append(points)
    earliest = np.full(count, LARGEST)
    for own, points in zip(roots, firsts, strict=True):
        np.minimum.at(earliest, own, points)
    order = earliest.argsort()
    labels = np.empty(count, np.int32)
    labels[order] = np.arange(start_label, start_label + count, dtype=np.int32)  # those that are no roots come last
    return [np.append(labels[own], np.int32(start_label - 1)) for own in roots]


def _gather(parts: Parts) -> tuple[Array, ...]:
    """Names, last heights and sums of all regions, edges, the highest merges in parts, offsets of parts, and pixels."""
    stored: dict[str, list[Any]] = {name: [] for name in ("names", "tops", "edges", "merges", "pixels")}
    for part in range(len(parts.corners)):
        with np.load(parts.file(part)) as file:
            for name, values in stored.items():
                values.append(file[name])
            if len(stored["merges"]) > 1:
                stored["merges"] = [highest(np.concatenate(stored["merges"]), parts.undone)]
    offsets = np.cumsum([0, *map(len, stored["names"])])
    sums: Array | None = None
    sides: dict[tuple[int, ...], Array] = {}
    for part, corner in enumerate(parts.corners):
        with np.load(parts.file(part)) as file:
            own, labels = file["sums"], file["labels"]
        if sums is None:
            sums = np.empty((offsets[-1], own.shape[1]), np.int64)
        sums[offsets[part] : offsets[part + 1]] = own
        stored["edges"][part] += np.int32(offsets[part])
        labels[labels >= 0] += np.int32(offsets[part])
        for axis in range(3):
            before = (axis, *(first - side * (other == axis)
                              for other, (first, side) in enumerate(zip(corner, parts.sides, strict=True))))
            if before in sides:
                stored["edges"].append(_touching(sides.pop(before), labels.take(0, axis)))
            sides[axis, *corner] = labels.take(-1, axis)
    return (*(np.concatenate(stored[name]) for name in ("names", "tops")), sums, np.concatenate(stored["edges"]),
            *stored["merges"], offsets, np.sum(stored["pixels"]))


def _touching(one: Array, other: Array) -> Array:
    """Pairs of regions on both sides of a border, ``(E, 2)``."""
    pairs = np.stack([one.ravel(), other.ravel()], 1)
    pairs = pairs[(pairs >= 0).all(1)]
    return np.unique(pairs.astype(np.int32), axis=0)
