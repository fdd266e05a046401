"""Partition and Hierarchy: what a tokenizer τ says of an image (§2.2)."""

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import torch
from torch import Tensor

from spit import kernels
from spit.kernels.reference.regions import pieces
from spit.kernels.reference.superpixels import between
from spit.tokens import cat_offsets, offsets_of, plural

SHOWN = 6  # counts of a batch that a repr shows


@dataclass(frozen=True)
class Partition:
    """Every pixel of every image in exactly one region.

    Regions of one image are numbered ``0 … N − 1``; packed over the batch, region v of image b is
    row ``offsets[b] + v`` of :meth:`sizes`, :meth:`boxes` and of the tokens made from it.

    Attributes:
        blocks: label maps of runs of images of one size.
        offsets: where each image's regions begin in packed order.
        frames: boxes that φ samples instead of the tight ones (square patches keep their full
            square where the image ends inside it, App. A).

    Shape:
        blocks ``(b, H, W)`` int32 each, offsets ``(B + 1,)`` int64, frames ``(ΣN, 4)`` int32.
    """

    blocks: tuple[Tensor, ...]
    offsets: Tensor
    frames: Tensor | None = None

    @staticmethod
    def of(labels: Tensor, counts: Tensor, frames: Tensor | None = None) -> "Partition":
        """The partition of a batch of one size, from ``(B, H, W)`` labels and ``(B,)`` counts."""
        return Partition((labels,), offsets_of(counts.to(torch.int64)), frames)

    @property
    def labels(self) -> Tensor | tuple[Tensor, ...]:
        """``(B, H, W)`` int32, or one ``(H, W)`` map an image where sizes differ."""
        if len(self.blocks) == 1:
            return self.blocks[0]
        return tuple(labels for block in self.blocks for labels in block)

    @property
    def counts(self) -> Tensor:
        """Regions in each image, ``(B,)``."""
        return self.offsets.diff()

    def packed_blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Each block's labels with the offsets of its own images, from 0."""
        first = 0
        for block in self.blocks:
            offsets = self.offsets[first : first + len(block) + 1]
            yield block, offsets - offsets[0]
            first += len(block)

    def packed_labels(self) -> Tensor:
        """Each pixel's row in packed order, all images one after another, ``(ΣP,)`` int64."""
        return torch.cat([rows.flatten() for rows in self._rows()])

    def to(self, device: torch.device | str) -> "Partition":
        """The same on another device."""
        frames = None if self.frames is None else self.frames.to(device)
        return Partition(tuple(block.to(device) for block in self.blocks), self.offsets.to(device), frames)

    def cpu(self) -> "Partition":
        """The same on the CPU."""
        return self.to("cpu")

    def sizes(self) -> Tensor:
        """Pixels in each region, ``(ΣN,)`` int64."""
        return torch.cat([kernels.region_sizes(*packed) for packed in self.packed_blocks()])

    def boxes(self) -> Tensor:
        """Bounding boxes ``(y0, x0, y1, x1)``, the ends exclusive, ``(ΣN, 4)`` int32."""
        return torch.cat([kernels.region_boxes(*packed) for packed in self.packed_blocks()])

    def paint(self, values: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Give each pixel its region's value, without interpolation.

        Shape:
            values ``(ΣN, ...)``; the answer is ``(B, H, W, ...)``, or one ``(H, W, ...)`` an image
            where sizes differ.
        """
        total = int(self.offsets[-1])
        if len(values) != total:
            few = ("; in training the token budget leaves regions out, and tokens are those that out.kept marks: "
                   "model.eval() keeps all") if len(values) < total else ""
            raise ValueError(f"expected one value for each of the {total} regions, got shape "
                             f"{tuple(values.shape)}{few}")
        painted = [values[rows] for rows in self._rows()]
        return painted[0] if len(painted) == 1 else tuple(image for block in painted for image in block)

    def boundaries(self) -> Tensor | tuple[Tensor, ...]:
        """Pixels with a south or east neighbour in another region, ``(B, H, W)`` bool."""
        maps = []
        for block in self.blocks:
            edge = torch.zeros_like(block, dtype=torch.bool)
            edge[:, :-1] |= block[:, :-1] != block[:, 1:]
            edge[:, :, :-1] |= block[:, :, :-1] != block[:, :, 1:]
            maps.append(edge)
        return maps[0] if len(maps) == 1 else tuple(image for block in maps for image in block)

    def _rows(self) -> Iterator[Tensor]:
        """Each block with its labels as rows in packed order."""
        return (block + self.offsets[first:last, None, None]
                for block, (first, last) in zip(self.blocks, self._spans(), strict=True))

    def _spans(self) -> Iterator[tuple[int, int]]:
        first = 0
        for block in self.blocks:
            yield first, first + len(block)
            first += len(block)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> "Partition":
        """The partition of one image, as a batch of one."""
        index = _index(index, len(self), "image")
        rows = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        frames = None if self.frames is None else self.frames[rows]
        for block, (first, last) in zip(self.blocks, self._spans(), strict=True):
            if index < last:
                return Partition((block[index - first, None],), self.offsets[index : index + 2] - rows.start, frames)
        raise IndexError(index)

    def __repr__(self) -> str:
        return f"Partition({_sizes(block.shape for block in self.blocks)}, regions {_few(self.counts.tolist())})"

    @staticmethod
    def cat(parts: Sequence["Partition"]) -> "Partition":
        """The images of several partitions one after another."""
        if len(parts) == 1:
            return parts[0]
        frames = [part.frames for part in parts if part.frames is not None]
        runs = groupby((block for part in parts for block in part.blocks), key=lambda block: block.shape[1:])
        return Partition(
            tuple(torch.cat(list(run)) for _, run in runs),
            cat_offsets([part.offsets for part in parts]),
            torch.cat(frames) if len(frames) == len(parts) else None,
        )


@dataclass(frozen=True)
class Hierarchy:
    """Nested partitions ``π^(0) ⊑ π^(1) ⊑ … ⊑ π^(T)`` (§2.2).

    ``hier[t]`` is π^(t); ``hier[0]`` has a region for each pixel and ``hier[-1]`` is the coarsest.

    Attributes:
        shapes: ``(b, H, W)`` of each run of images of one size.
        parents: ``parents[t]`` maps each region of π^(t) to its region of π^(t+1), in the numbering
            of its image.
        offsets: ``offsets[t]`` are the offsets of π^(t).
        features: what the regions were joined by, in blocks of one size, for :meth:`at`.

    Shape:
        parents[t] ``(ΣN^(t),)`` int32, offsets[t] ``(B + 1,)`` int64, features ``(b, C, H, W)`` int16 each.
    """

    shapes: tuple[tuple[int, int, int], ...]
    parents: tuple[Tensor, ...]
    offsets: tuple[Tensor, ...]
    features: tuple[Tensor, ...] = ()

    @staticmethod
    def of(features: Tensor, levels: Sequence[tuple[Tensor, Tensor]]) -> "Hierarchy":
        """The hierarchy of a batch of one size, from its features and the parents and counts of every level."""
        batch, _, height, width = features.shape
        pixels = torch.full((batch,), height * width, device=features.device)
        offsets = [offsets_of(counts) for counts in (pixels, *(counts for _, counts in levels))]
        return Hierarchy(((batch, height, width),), tuple(parents for parents, _ in levels), tuple(offsets),
                         (features,))

    def below(self, top: Partition) -> "Hierarchy":
        """The same levels cut along the boundaries of ``top``, which becomes the last: so they are nested again."""
        levels = []
        for level in range(1, len(self.parents)):
            cuts = [pieces(*maps) for maps in zip(self[level].blocks, top.blocks, strict=True)]
            levels.append(Partition(tuple(labels for labels, _ in cuts),
                                    offsets_of(torch.cat([counts for _, counts in cuts]))))
        levels.append(top)
        parents = []
        for lower, upper in pairwise([self[0], *levels]):
            above = torch.empty(int(lower.offsets[-1]), dtype=torch.int32, device=top.offsets.device)
            above[lower.packed_labels().long()] = torch.cat([block.flatten() for block in upper.blocks])
            parents.append(above)
        return Hierarchy(self.shapes, tuple(parents), (self.offsets[0], *(level.offsets for level in levels)),
                         self.features)

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
        return Partition(tuple(block.view(shape) for block, shape in zip(blocks, self.shapes, strict=True)),
                         self.offsets[level])

    def at(self, count: int) -> Partition:
        """The partition of ``count`` regions in every image.

        It lies between the two levels around that count: it never crosses a region of the one above,
        and regions of the one below are joined where the squared error of their features grows least.
        Below the last level's count, regions go on being joined. Computed on the CPU.
        """
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"expected a whole number of regions, got {count!r}")
        fewest = int(self.counts[0].min())
        if not 1 <= count <= fewest:
            raise ValueError(f"expected a count of 1 to {fewest}, the pixels of an image, got {count}")
        if not self.features:
            raise ValueError("this hierarchy has no features to join regions by; "
                             "make it with tokenizer.hierarchy(images)")
        levels: dict[int, Partition] = {}
        features = [image for block in self.features for image in block]
        parts = []
        for b, counts in enumerate(self.counts.T.tolist()):
            below = max(level for level, regions in enumerate(counts) if regions >= count)
            for level in (below, below + 1):
                if level < len(self) and level not in levels:
                    levels[level] = self[level].cpu()
            part = levels[below][b]
            if counts[below] > count:
                ceiling = levels[below + 1][b].blocks[0][0] if below + 1 < len(self) else None
                labels = between(features[b].cpu(), part.blocks[0][0], ceiling, count)
                part = Partition.of(labels[None], torch.tensor([count]))
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
        """The images of several hierarchies of as many levels, one after another."""
        runs = groupby((shape for part in parts for shape in part.shapes), key=lambda shape: shape[1:])
        return Hierarchy(
            tuple((sum(batch for batch, _, _ in run), *size) for size, run in runs),
            tuple(torch.cat(level) for level in zip(*(part.parents for part in parts), strict=True)),
            tuple(cat_offsets(level) for level in zip(*(part.offsets for part in parts), strict=True)),
            tuple(block for part in parts for block in part.features),
        )


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


def _few(counts: list[int]) -> str:
    more = f", … {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
    return f"[{', '.join(map(str, counts[:SHOWN]))}{more}]"
