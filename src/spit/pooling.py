"""Values at pixels, or at the cells of a feature map, to one row for each region: the way back of ``paint``."""

from collections.abc import Sequence

import torch
from torch import Tensor

from spit.options import check_choice
from spit.partition import Partition
from spit.wording import plural

Maps = Tensor | Sequence[Tensor]
Pair = tuple[int, int]


def pool(features: Maps, partition: Partition, reduce: str = "mean") -> Tensor:
    """Pool the feature map of any backbone to one vector for each region.

    The h × w cells of a map divide its image evenly: each covers H/h × W/w pixels, whole ones and parts. The mean of
    region v is ``Σ_c |v ∩ c| · f(c) / |v|`` with exact areas.

    Args:
        features: channels first, coarser or finer than the images; call ``.movedim(-1, 1)`` on the channels-last maps
            of Swin and Hiera.
        partition: of the images that the maps were made from.
        reduce: "mean", "max" (over the cells that a region overlaps) or "both" (mean and max side by side).

    Shape:
        features ``(B, C, h, w)``, or a list of ``(C, h, w)`` where sizes differ, to ``(ΣN, C)`` in their dtype;
        ``(ΣN, 2C)`` for "both".

    Raises:
        TypeError: if features are not floating tensors, or partition is not a Partition.
        ValueError: if they differ in the number of images or the device, or channels come last.

    Note:
        Differentiable with respect to features. Sums have double precision and one order, so a vector depends on its
        own image alone, bit for bit. NaN and infinity reach only the regions that overlap their cells. A map has to
        cover its image and no more: resize images to a size that the backbone neither pads nor crops.

    Example:
        >>> import spit, torch
        >>> images = torch.rand(2, 3, 64, 64)
        >>> part = spit.PatchTokenizer(16)(images)
        >>> backbone = torch.nn.Conv2d(3, 8, kernel_size=8, stride=8)  # or Swin, ConvNeXt, Hiera, SAM
        >>> spit.pool(backbone(images), part).shape
        torch.Size([32, 8])
    """
    check_choice("reduce", reduce, ("mean", "max", "both"))
    pairs = _pairs("features", features, partition, 4)
    overlaps, before = [], 0
    for maps, rows in pairs:
        (channels, h, w), (height, width) = maps.shape[1:], rows.shape[1:]
        if not maps.is_floating_point():
            raise TypeError(f"expected floating features, got {maps.dtype}; call .float()")
        if height * w != width * h and height * h == width * channels:  # cells would be squares if channels were last
            raise ValueError(f"expected channels first, (B, C, h, w), got {tuple(maps.shape)} for images of "
                             f"{height}×{width}; call .movedim(-1, 1) if the channels are last")
        region, cell, area = _overlaps(rows, (h, w), (h, height), (w, width))
        overlaps.append((region, cell + before, area))
        before += len(maps) * h * w
    region, cell, area = map(torch.cat, zip(*overlaps, strict=True))
    values = torch.cat([maps.movedim(1, -1).flatten(0, 2) for maps, _ in pairs])  # (cells, C)
    exact, count = values.double()[cell], sum(partition.host_counts)
    answers = []
    if reduce != "max":
        answers.append(_sums(exact * area[:, None], region, count) / _sums(area[:, None], region, count))
    if reduce != "mean":
        answers.append(_largest(exact, region, count))
    return torch.cat(answers, 1).to(values.dtype)


def pool_pixels(values: Maps, partition: Partition, reduce: str) -> Tensor:
    """The rows of :meth:`spit.Partition.pool`."""
    check_choice("reduce", reduce, ("mean", "sum", "max", "majority"))
    pairs = _pairs("values", values, partition, *((3,) if reduce == "majority" else (4, 3)))
    for maps, rows in pairs:
        if maps.shape[-2:] != rows.shape[1:]:
            raise ValueError(f"expected values at {rows.shape[1]}×{rows.shape[2]} pixels, channels first, got "
                             f"{maps.shape[2]}×{maps.shape[3]}; spit.pool takes maps of other sizes")
    given = torch.cat([maps.movedim(1, -1).flatten(0, 2) for maps, _ in pairs])  # (ΣP, C)
    region = torch.cat([rows.flatten() for _, rows in pairs])
    count, floating = sum(partition.host_counts), given.is_floating_point()
    if given.is_complex() or (floating and reduce == "majority"):
        raise TypeError(f"expected {'integer labels' if floating else 'real values'}, got {given.dtype}")
    exact = given.double() if floating else given.long()
    answer = {"majority": _majority, "max": _largest}.get(reduce, _sums)(exact, region, count)
    if reduce == "mean":
        answer = answer.double() / partition.sizes()[:, None]
    dtype = given.dtype if floating else {"mean": torch.float32, "sum": torch.int64}.get(reduce, given.dtype)
    return (answer if values[0].ndim == 3 else answer[:, 0]).to(dtype)


def cell_shares(partition: Partition, side: int) -> tuple[Tensor, ...]:
    """The share of each region that lies in each cell of a grid, for every image.

    Args:
        side: of a cell in pixels. Cell (i, j) has the pixels ``[i·side, (i + 1)·side) × [j·side, (j + 1)·side)``; the
            last cells may reach beyond the image.

    Shape:
        One ``(N, ⌈H/side⌉ · ⌈W/side⌉)`` float32 matrix an image, on the partition's device. Its rows sum to 1.
    """
    answers: list[Tensor] = []
    sizes, before = partition.sizes(), 0
    for rows in partition._rows():
        h, w = (-(-pixels // side) for pixels in rows.shape[1:])
        own = partition.host_counts[len(answers) : len(answers) + len(rows)]
        region, cell, area = _overlaps(rows, (h, w), (1, side), (1, side))
        shares = sizes.new_zeros(sum(own), h * w, dtype=torch.float32)
        shares[region - before, cell % (h * w)] = (area.double() / sizes[region]).float()
        answers += shares.split(list(own))
        before += len(shares)
    return tuple(answers)


def _pairs(name: str, given: Maps, partition: Partition, *dimensions: int) -> list[tuple[Tensor, Tensor]]:
    """Checked maps ``(b, C, h, w)`` with the packed rows of their pixels ``(b, H, W)``, by block; a list by image."""
    if not isinstance(partition, Partition):
        raise TypeError(f"expected a spit.Partition, got {type(partition).__name__}; Partition.from_labels makes one")
    listed = isinstance(given, list | tuple)
    maps: list[Tensor] = list(given) if listed else [given]  # type: ignore[list-item]
    if not maps or not all(isinstance(one, Tensor) for one in maps):
        raise TypeError(f"expected {name} as a tensor, or a list with a tensor for each image, got "
                        f"{', '.join(dict.fromkeys(type(one).__name__ for one in maps)) or 'an empty list'}")
    shapes = list(dict.fromkeys(tuple(one.shape) for one in maps))
    if (maps[0].ndim + listed not in dimensions or len({shape[:-2] for shape in shapes}) > 1
            or any(0 in shape for shape in shapes)):
        words = " or ".join("(B, C, H, W)" if count == 4 else "(B, H, W)" for count in dimensions)
        raise ValueError(f"expected {name} of shape {words}, or a list of such maps without B, got "
                         f"{', '.join(map(str, shapes[:3]))}")
    images = len(maps) if listed else len(maps[0])
    if images != len(partition):
        hint = "; x[None] makes a batch of one (C, H, W) map" if len(partition) == 1 and not listed else ""
        raise ValueError(f"expected {name} of {plural(len(partition), 'image')}, got {images}{hint}")
    for one in maps:
        if one.device != partition.offsets.device:
            raise ValueError(f"expected {name} on {partition.offsets.device}, where the partition is, got {one.device}")
    rows = list(partition._rows())
    rows = [image[None] for block in rows for image in block] if listed else rows
    blocks = [one[None] for one in maps] if listed else maps[0].split([len(block) for block in rows])
    return [(one if one.ndim == 4 else one[:, None], own) for one, own in zip(blocks, rows, strict=True)]


def _overlaps(rows: Tensor, grid: Pair, tall: Pair, wide: Pair) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs of a region and a cell that overlap, by region and then by cell, and the area of each overlap.

    ``tall`` and ``wide`` are the lengths of a pixel and of a cell along either axis, whole numbers. Packed rows
    ``(b, H, W)`` give rows, cells (of b · h · w) and areas, ``(K,)`` int64 each.
    """
    y, i, heights = _pieces(rows.shape[1], *tall, rows.device)
    x, j, widths = _pieces(rows.shape[2], *wide, rows.device)
    images, total = torch.arange(len(rows), device=rows.device), len(rows) * grid[0] * grid[1]
    cells = (images[:, None, None] * grid[0] + i[:, None]) * grid[1] + j
    pairs, numbers = (rows[:, y][:, :, x] * total + cells).unique(return_inverse=True)
    areas = (heights[:, None] * widths).expand(cells.shape).flatten()
    return pairs // total, pairs % total, areas.new_zeros(len(pairs)).index_add(0, numbers.flatten(), areas)


def _pieces(pixels: int, pixel: int, cell: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """An axis cut at the edges of pixels and of cells: the pixel, the cell and the length of each piece."""
    end = pixels * pixel
    edges = torch.cat([torch.arange(0, end + 1, pixel), torch.arange(0, end, cell)]).unique().to(device)
    return edges[:-1] // pixel, edges[:-1] // cell, edges.diff()


def _sums(values: Tensor, rows: Tensor, count: int) -> Tensor:
    """The sum of the values of each row, ``(K, C)`` to ``(count, C)``, added in one order."""
    start = values.new_zeros(count, values.shape[1])
    if values.is_cuda:  # where index_add has no order
        return start.index_put((rows,), values, accumulate=True)
    return start.index_add(0, rows, values)


def _largest(values: Tensor, rows: Tensor, count: int) -> Tensor:
    """The largest value of each row, ``(K, C)`` to ``(count, C)``."""
    start = values.new_zeros(count, values.shape[1])
    return start.scatter_reduce(0, rows[:, None].expand_as(values), values, "amax", include_self=False)


def _majority(labels: Tensor, rows: Tensor, count: int) -> Tensor:
    """The most frequent label of each row, or the smallest of those, ``(K, 1)`` to ``(count, 1)``."""
    names, numbers = labels[:, 0].unique(return_inverse=True)
    pairs, votes = (rows * len(names) + numbers).unique(return_counts=True)
    row, number = pairs // len(names), pairs % len(names)
    first = votes == _largest(votes[:, None], row, count)[row, 0]
    answer: Tensor = names[-_largest(-number[first, None], row[first], count)]
    return answer
