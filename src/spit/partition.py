"""Partition and Hierarchy: what a tokenizer τ returns for a batch of images (§2.2)."""

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import torch
from torch import Tensor

from spit import kernels
from spit.kernels.portable import Adjacency, region_adjacency, region_centroids
from spit.tokens import Packed, cat_offsets, offsets_of
from spit.validation import SHOWN, LabelMap, check_frames, check_labels, few, integers
from spit.wording import plural


@dataclass(frozen=True, eq=False)
class Partition(Packed):
    """A division of the pixels of every image into regions: each pixel is in exactly one.

    The regions of an image are numbered ``0 … N − 1``. Packed over the batch, region v of image b is row
    ``offsets[b] + v`` of :meth:`sizes`, of :meth:`boxes` and of the tokens made from it.

    ``Partition(blocks, offsets)`` and :meth:`of` check what they are given; :meth:`from_labels` accepts any
    integer label maps and numbers them itself. Regions need not be connected.

    Attributes:
        blocks: label maps of consecutive images of one size.
        offsets: where the regions of each image begin in packed order.
        frames: boxes that φ samples instead of the tight ones; each must contain its region. Square patches keep
            their whole square where the image ends inside it (App. A).

    Shape:
        blocks ``(b, H, W)`` int32 each, offsets ``(B + 1,)`` int64, frames ``(ΣN, 4)`` int32. Other integer
        types are converted.

    Example:
        >>> import torch
        >>> from spit import Partition
        >>> part = Partition.from_labels(torch.tensor([[1, 1, 4], [1, 7, 4]]))
        >>> part
        Partition(1 image of 2×3, regions [3])
        >>> part.labels.tolist()
        [[[0, 0, 1], [0, 2, 1]]]
        >>> part.sizes().tolist()
        [3, 2, 1]
        >>> part.boxes().tolist()  # (y0, x0, y1, x1)
        [[0, 0, 2, 2], [0, 2, 2, 3], [1, 1, 2, 2]]
        >>> part.centroids().tolist()  # (y, x)
        [[0.3333333432674408, 0.3333333432674408], [0.5, 2.0], [1.0, 1.0]]
        >>> [answer.tolist() for answer in part.adjacency()]  # edges and their lengths
        [[[0, 1], [0, 2], [1, 2]], [1, 2, 1]]
        >>> part.paint(torch.tensor([0.5, 1.0, 0.0])).tolist()
        [[[0.5, 0.5, 1.0], [0.5, 0.0, 1.0]]]
        >>> part.pool(torch.tensor([[[0.0, 1.0, 4.0], [2.0, 7.0, 8.0]]])).tolist()
        [1.0, 6.0, 7.0]
    """

    blocks: tuple[Tensor, ...]
    offsets: Tensor
    frames: Tensor | None = None

    def __post_init__(self) -> None:
        blocks, offsets = check_labels(self.blocks, self.offsets)
        object.__setattr__(self, "blocks", blocks)
        object.__setattr__(self, "offsets", offsets)
        if self.frames is not None:
            object.__setattr__(self, "frames", check_frames(self.frames, self.boxes()))

    @classmethod
    def _trusted(cls, blocks: tuple[Tensor, ...], offsets: Tensor, frames: Tensor | None = None) -> "Partition":
        """A partition that spit's own kernels made. Nothing is checked, so nothing waits for a GPU."""
        part = object.__new__(cls)
        part.__dict__.update(blocks=blocks, offsets=offsets, frames=frames)
        return part

    @staticmethod
    def of(labels: Tensor, counts: Tensor | Sequence[int], frames: Tensor | None = None) -> "Partition":
        """The partition of a batch of one size, from ``(B, H, W)`` labels and ``(B,)`` counts of regions."""
        counts = torch.as_tensor(counts, device=getattr(labels, "device", None))
        return Partition((labels,), offsets_of(integers("counts", counts, 1).long()), frames)

    @staticmethod
    def from_labels(labels: LabelMap | Sequence[LabelMap]) -> "Partition":
        """The partition that any integer label maps describe, for instance those of ``skimage.segmentation.slic``.

        Labels may start anywhere and have gaps: each image's regions are numbered 0 … N − 1 in the order of their
        labels.

        Args:
            labels: one ``(H, W)`` map, a ``(B, H, W)`` batch, or a list of ``(H, W)`` maps of any sizes; tensors
                or arrays of integers. They are not modified.

        Example:
            >>> import numpy as np
            >>> from spit import Partition
            >>> Partition.from_labels([np.array([[3, 3], [9, 3]]), np.array([[1, 2, 2]])]).labels
            (tensor([[0, 0],
                    [1, 0]], dtype=torch.int32), tensor([[0, 1, 1]], dtype=torch.int32))
        """
        if isinstance(labels, list | tuple):
            maps = [integers("label map", one, 2) for one in labels]
        else:
            given = integers("labels", labels, 2, 3)
            maps = [given] if given.ndim == 2 else list(given)
        if not maps or any(one.numel() == 0 for one in maps):
            raise ValueError(f"expected at least one label map with pixels, got {[tuple(one.shape) for one in maps]}")
        parts = []
        for one in maps:
            names, numbers = one.long().unique(return_inverse=True)
            parts.append(Partition._trusted((numbers[None].int(),), torch.tensor([0, len(names)], device=one.device)))
        return Partition.cat(parts)

    @property
    def labels(self) -> Tensor | tuple[Tensor, ...]:
        """``(B, H, W)`` int32, or one ``(H, W)`` map per image where sizes differ."""
        return _by_image(self.blocks)

    def block_total(self, index: int) -> int:
        """The number of regions in a block."""
        before = sum(len(block) for block in self.blocks[:index])
        return sum(self.host_counts[before : before + len(self.blocks[index])])

    def packed_blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Each block's labels with the offsets of its own images, from 0."""
        if len(self.blocks) == 1:
            yield self.blocks[0], self.offsets
            return
        first = 0
        for block in self.blocks:
            yield block, self.offsets[first : first + len(block) + 1] - self.offsets[first]
            first += len(block)

    def to(self, device: torch.device | str) -> "Partition":
        """The partition on another device."""
        return Partition._trusted(tuple(block.to(device) for block in self.blocks), self.offsets.to(device),
                                  None if self.frames is None else self.frames.to(device))

    def sizes(self) -> Tensor:
        """Pixels in each region, ``(ΣN,)`` int64."""
        return torch.cat([kernels.region_sizes(*packed) for packed in self.packed_blocks()])

    def boxes(self) -> Tensor:
        """Bounding boxes ``(y0, x0, y1, x1)`` with exclusive ends, ``(ΣN, 4)`` int32."""
        return torch.cat([kernels.region_boxes(*packed) for packed in self.packed_blocks()])

    def centroids(self) -> Tensor:
        """Mean ``(y, x)`` of the pixels of each region, ``(ΣN, 2)`` float32; the first pixel is at (0, 0)."""
        return torch.cat([region_centroids(*packed) for packed in self.packed_blocks()])

    def adjacency(self) -> Adjacency:
        """Which regions touch: ``edges (E, 2)``, packed rows, and ``lengths (E,)`` of their borders in pixels."""
        return region_adjacency(list(self._rows()), sum(self.host_counts))

    def paint(self, values: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Give each pixel the value of its region, without interpolation.

        Shape:
            values ``(ΣN, ...)`` to ``(B, H, W, ...)``, or one ``(H, W, ...)`` per image where sizes differ.
        """
        total = int(self.offsets[-1])
        if len(values) != total:
            hint = ("; in training a token budget drops regions: out.kept marks those that are left, and model.eval() "
                    "keeps all") if len(values) < total else ""
            raise ValueError(f"expected one value for each of the {total} regions, got shape "
                             f"{tuple(values.shape)}{hint}")
        return _by_image([values[rows] for rows in self._rows()])

    def pool(self, values: Tensor | Sequence[Tensor], reduce: str = "mean") -> Tensor:
        """Reduce values at the pixels to one row for each region, the way back of :meth:`paint`.

        Args:
            values: channels first. :func:`spit.pool` takes maps of other sizes.
            reduce: "mean", "sum", "max" or "majority": of integer labels ``(B, H, W)`` the most frequent one, or the
                smallest of those.

        Shape:
            ``(B, C, H, W)`` to ``(ΣN, C)``, or ``(B, H, W)`` to ``(ΣN,)``; a list without B where sizes differ. In the
            dtype of the values, but the mean of integers is float32 and their sum int64.
        """
        from spit.pooling import pool_pixels  # which imports this module

        return pool_pixels(values, self, reduce)

    def boundaries(self) -> Tensor | tuple[Tensor, ...]:
        """Pixels with a south or east neighbour in another region, ``(B, H, W)`` bool."""
        maps = []
        for block in self.blocks:
            edge = torch.zeros_like(block, dtype=torch.bool)
            edge[:, :-1] |= block[:, :-1] != block[:, 1:]
            edge[:, :, :-1] |= block[:, :, :-1] != block[:, :, 1:]
            maps.append(edge)
        return _by_image(maps)

    def _rows(self) -> Iterator[Tensor]:
        """Each block, with rows in packed order instead of labels."""
        starts = self.offsets[:-1].split([len(block) for block in self.blocks])
        return (block + start[:, None, None] for block, start in zip(self.blocks, starts, strict=True))

    def __eq__(self, other: object) -> bool:
        """Whether both have the same regions with the same numbers, on any device, and the same frames."""
        if not isinstance(other, Partition):
            return NotImplemented
        mine, theirs = ([*part.labels, part.offsets, *([] if part.frames is None else [part.frames])]
                        for part in (self, other))
        return len(mine) == len(theirs) and all(
            torch.equal(one, two.to(one.device)) for one, two in zip(mine, theirs, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of a list: labels can be changed

    def __getitem__(self, index: int) -> "Partition":
        """The partition of one image, as a batch of one."""
        index = _index(index, len(self), "image")
        rows = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        frames = None if self.frames is None else self.frames[rows]
        labels = [labels for block in self.blocks for labels in block][index]
        return Partition._trusted((labels[None],), self.offsets[index : index + 2] - rows.start, frames)

    def __repr__(self) -> str:
        return f"Partition({_sizes(block.shape for block in self.blocks)}, regions {few(self.counts.tolist())})"

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        from spit.drawing.notebook import partition_png  # which imports this module

        return partition_png(self)

    @staticmethod
    def cat(parts: Sequence["Partition"]) -> "Partition":
        """The images of several partitions one after another; frames are kept if all parts have them."""
        if len(parts) == 1:
            return parts[0]
        frames = [part.frames for part in parts if part.frames is not None]
        runs = groupby((block for part in parts for block in part.blocks), key=lambda block: block.shape[1:])
        return Partition._trusted(
            tuple(torch.cat(list(run)) for _, run in runs),
            cat_offsets([part.offsets for part in parts]),
            torch.cat(frames) if len(frames) == len(parts) else None,
        )


@dataclass(frozen=True, init=False)
class Hierarchy:
    """Nested partitions ``π^(0) ⊑ π^(1) ⊑ … ⊑ π^(T)`` (§2.2).

    :meth:`spit.SuperpixelTokenizer.hierarchy` makes it. ``hier[t]`` is π^(t). ``hier[0]`` has one region per pixel and
    ``hier[-1]`` is the coarsest partition.

    Attributes:
        shapes: ``(b, H, W)`` of consecutive images of one size.
        parents: ``parents[t]`` maps each region of π^(t) to its region of π^(t+1), numbered within its image.
        offsets: ``offsets[t]`` are the offsets of π^(t).
        features: what the regions were joined by, in blocks of one size, for :meth:`at`.

    Shape:
        parents[t] ``(ΣN^(t),)`` int32, offsets[t] ``(B + 1,)`` int64, features ``(b, C, H, W)`` int16 each.

    Example:
        >>> import torch
        >>> from spit import SuperpixelTokenizer
        >>> stripes = torch.tensor([0, 40, 150, 200], dtype=torch.uint8).repeat_interleave(4).expand(3, 4, -1)
        >>> hier = SuperpixelTokenizer(levels=2, similarity="variance", self_loop="none").hierarchy(stripes)
        >>> hier
        Hierarchy(levels 0 to 2, 1 image of 4×16, regions by level [64, 4, 2])
        >>> hier.parents[1].tolist()  # from the four stripes to the two regions above
        [0, 0, 1, 1]
        >>> hier.at(3).labels[0, 0].tolist()  # a partition between two levels
        [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]
    """

    shapes: tuple[tuple[int, int, int], ...]
    parents: tuple[Tensor, ...]
    offsets: tuple[Tensor, ...]
    features: tuple[Tensor, ...]

    def __init__(self) -> None:
        raise TypeError("a hierarchy cannot be made by hand; call SuperpixelTokenizer(…).hierarchy(images)")

    @classmethod
    def _trusted(cls, shapes: tuple[tuple[int, int, int], ...], parents: tuple[Tensor, ...],
                 offsets: tuple[Tensor, ...], features: tuple[Tensor, ...]) -> "Hierarchy":
        """A hierarchy that spit's own kernels made. Nothing is checked."""
        hierarchy = object.__new__(cls)
        hierarchy.__dict__.update(shapes=shapes, parents=parents, offsets=offsets, features=features)
        return hierarchy

    @staticmethod
    def _of(features: Tensor, levels: kernels.Levels) -> "Hierarchy":
        """The hierarchy of a batch of one size, from its features and what :func:`spit.kernels.superpixels` returns."""
        batch, _, height, width = features.shape
        return Hierarchy._trusted(((batch, height, width),), tuple(parents for parents, _ in levels),
                                  tuple(kernels.level_offsets(levels, features)), (features,))

    def below(self, top: Partition) -> "Hierarchy":
        """The hierarchy with ``top`` as its last level and the others cut along its boundaries, so all are nested."""
        levels = []
        for level in range(1, len(self.parents)):
            cuts = [kernels.pieces(*maps) for maps in zip(self[level].blocks, top.blocks, strict=True)]
            levels.append(Partition._trusted(tuple(labels for labels, _ in cuts),
                                             offsets_of(torch.cat([counts for _, counts in cuts]))))
        levels.append(top)
        parents = []
        for lower, upper in pairwise([self[0], *levels]):
            above = torch.empty(int(lower.offsets[-1]), dtype=torch.int32, device=top.offsets.device)
            rows = torch.cat([rows.flatten() for rows in lower._rows()])
            above[rows] = torch.cat([block.flatten() for block in upper.blocks])
            parents.append(above)
        return Hierarchy._trusted(self.shapes, tuple(parents),
                                  (self.offsets[0], *(level.offsets for level in levels)), self.features)

    @property
    def counts(self) -> Tensor:
        """Regions of each image at each level, ``(T + 1, B)``."""
        return torch.stack([offsets.diff() for offsets in self.offsets])

    def __getitem__(self, level: int) -> Partition:
        level = _index(level, len(self), "level")
        if level == 0:
            labels = torch.cat([torch.arange(pixels, dtype=torch.int32, device=self.offsets[0].device)
                                for pixels in self.offsets[0].diff().tolist()])
        else:
            labels = kernels.compose(self.parents[:level], self.offsets[: level + 1])
            labels = labels.clone() if level == 1 else labels  # not the parents themselves
        blocks = labels.split([b * h * w for b, h, w in self.shapes])
        return Partition._trusted(tuple(block.view(shape) for block, shape in zip(blocks, self.shapes, strict=True)),
                                  self.offsets[level])

    def at(self, count: int) -> Partition:
        """The partition with exactly ``count`` regions in every image.

        It lies between the two levels around that count: regions of the finer level are joined, within those of
        the coarser level, where the squared error of their features grows least. If ``count`` is below that of
        the last level, its regions are joined further. Computed on the CPU.
        """
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"expected a whole number of regions, got {count!r}")
        fewest = int(self.counts[0].min())
        if not 1 <= count <= fewest:
            raise ValueError(f"expected a count of 1 to {fewest}, the pixels of an image, got {count}")
        levels: dict[int, Partition] = {}
        features = [image for block in self.features for image in block]
        parts = []
        for b, counts in enumerate(self.counts.T.tolist()):
            below = max(level for level, regions in enumerate(counts) if regions >= count)
            for level in (below, below + 1):
                if level < len(self) and level not in levels:
                    levels[level] = self[level].to("cpu")
            part = levels[below][b]
            if counts[below] > count:
                ceiling = levels[below + 1][b].blocks[0][0] if below + 1 < len(self) else None
                labels = kernels.between(features[b].cpu(), part.blocks[0][0], ceiling, count)
                part = Partition._trusted((labels[None],), torch.tensor([0, count]))
            parts.append(part)
        return Partition.cat(parts).to(self.offsets[0].device)

    def __iter__(self) -> Iterator[Partition]:
        return (self[level] for level in range(len(self)))

    def __len__(self) -> int:
        return len(self.parents) + 1

    def __repr__(self) -> str:
        totals = [int(offsets[-1]) for offsets in self.offsets]
        return f"Hierarchy(levels 0 to {len(self.parents)}, {_sizes(self.shapes)}, regions by level {totals})"

    @staticmethod
    def cat(parts: Sequence["Hierarchy"]) -> "Hierarchy":
        """The images of several hierarchies with the same number of levels, one after another."""
        runs = groupby((shape for part in parts for shape in part.shapes), key=lambda shape: shape[1:])
        return Hierarchy._trusted(
            tuple((sum(batch for batch, _, _ in run), *size) for size, run in runs),
            tuple(torch.cat(level) for level in zip(*(part.parents for part in parts), strict=True)),
            tuple(cat_offsets(level) for level in zip(*(part.offsets for part in parts), strict=True)),
            tuple(block for part in parts for block in part.features),
        )


def _by_image(blocks: Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """The block itself if there is one, else the images of all blocks."""
    return blocks[0] if len(blocks) == 1 else tuple(image for block in blocks for image in block)


def _index(index: int, count: int, noun: str) -> int:
    """The index from 0; negative ones count from the end."""
    index = operator.index(index)
    if not -count <= index < count:
        raise IndexError(f"expected {noun} 0 to {count - 1}, or -{count} to -1 from the end, got {index}")
    return index % count


def _sizes(shapes: Iterable[tuple[int, ...]]) -> str:
    """Each run of images of one size, "2 images of 224×224"."""
    runs = [f"{plural(batch, 'image')} of {height}×{width}" for batch, height, width in shapes]
    return ", ".join(runs[:SHOWN]) + (f" and {len(runs) - SHOWN} more sizes" if len(runs) > SHOWN else "")
