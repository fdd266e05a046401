"""Values at pixels, or at the cells of a feature map, to one row for each region: the way back of ``paint``."""

from collections.abc import Sequence
from math import gcd

import torch
from torch import Tensor

from spit.options import check_choice
from spit.partition import Partition
from spit.wording import plural

Maps = Tensor | Sequence[Tensor]
Units = tuple[int, int]  # lengths of a pixel and of a cell along an axis, in whole numbers


def pool(features: Maps, partition: Partition, reduce: str = "mean") -> Tensor:
    """Pool a feature map of any backbone to one vector for each region.

    The h × w cells of a map divide its image evenly: a cell covers H/h × W/w pixels, whole ones and parts. The mean
    of region v is ``Σ_c |v ∩ c| · f(c) / |v|`` with exact areas.

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
        own image alone, bit for bit. NaN and infinity reach the regions that overlap their cells. The cells of a
        backbone that pads its input reach beyond the image: resize images to a size that it does not pad.

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
        if height * w != width * h and height * h == width * channels:  # cells are squares if channels are last
            raise ValueError(f"expected channels first, (B, C, h, w), got {tuple(maps.shape)} for images of "
                             f"{height}×{width}; call .movedim(-1, 1) if the channels are last")
        region, cell, area = _overlaps(rows, _even(height, h), _even(width, w))
        overlaps.append((region, cell + before, area))
        before += len(maps) * h * w
    region, cell, area = map(torch.cat, zip(*overlaps, strict=True))
    values = _rows(pairs)
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
            raise ValueError(f"expected values at the {rows.shape[1]}×{rows.shape[2]} pixels of the partition, channels "
                             f"first, got shape {tuple(maps.shape)}; spit.pool takes maps of other sizes")
    given, region, count = _rows(pairs), torch.cat([rows.flatten() for _, rows in pairs]), sum(partition.host_counts)
    floating = given.is_floating_point()
    if given.is_complex() or (floating and reduce == "majority"):
        raise TypeError(f"expected {'integer labels' if floating else 'real values'}, got {given.dtype}")
    exact = given.double() if floating else given.long()
    if reduce == "majority":
        answer = _majority(exact[:, 0], region, count)[:, None].to(given.dtype)
    elif reduce == "max":
        answer = _largest(given if floating else exact, region, count).to(given.dtype)
    else:
        answer = _sums(exact, region, count)
        if reduce == "mean":
            answer = answer.double() / partition.sizes()[:, None]
        answer = answer.to(given.dtype) if floating else answer.float() if reduce == "mean" else answer
    return answer if pairs[0][0].ndim == 4 else answer[:, 0]


def cell_shares(partition: Partition, side: int) -> tuple[Tensor, ...]:
    """The share of a region that lies in each cell of a grid, for every image.

    Args:
        side: of a cell in pixels. Cell (i, j) has the pixels ``[i·side, (i + 1)·side) × [j·side, (j + 1)·side)``; the
            last ones may reach beyond the image.

    Shape:
        One ``(N, ⌈H/side⌉ · ⌈W/side⌉)`` float32 matrix an image, whose rows sum to 1.
    """
    answers: list[Tensor] = []
    counts, sizes, before = partition.host_counts, partition.sizes(), 0
    for rows in partition._rows():
        cells = -(-rows.shape[1] // side) * -(-rows.shape[2] // side)
        own = counts[len(answers) : len(answers) + len(rows)]
        region, cell, area = _overlaps(rows, (1, side), (1, side))
        shares = sizes.new_zeros(sum(own), cells, dtype=torch.float32)
        shares[region - before, cell % cells] = (area.double() / sizes[region]).float()
        answers += shares.split(own)
        before += len(shares)
    return tuple(answers)


def _pairs(name: str, given: Maps, partition: Partition, *dimensions: int) -> list[tuple[Tensor, Tensor]]:
    """Checked maps ``(b, …)`` with the packed rows of their pixels ``(b, H, W)``: by block, or by image for a list."""
    if not isinstance(partition, Partition):
        raise TypeError(f"expected a spit.Partition, got {type(partition).__name__}; Partition.from_labels makes one")
    maps = [given] if isinstance(given, Tensor) else list(given) if isinstance(given, list | tuple) else []
    if not maps or not all(isinstance(one, Tensor) for one in maps):
        raise TypeError(f"expected {name} as a tensor or a list of tensors, one for each image, got "
                        f"{type(maps[0] if maps else given).__name__}")
    if not isinstance(given, Tensor):
        maps = [one[None] for one in maps]
    shapes = {one.shape[1:-2] for one in maps}
    if maps[0].ndim not in dimensions or len(shapes) > 1 or any(0 in one.shape for one in maps):
        words = " or ".join({4: "(B, C, H, W)", 3: "(B, H, W)"}[count] for count in dimensions)
        raise ValueError(f"expected {name} of shape {words}, or a list of these without B, got "
                         f"{', '.join(dict.fromkeys(str(tuple(one.shape)) for one in maps))}")
    if sum(map(len, maps)) != len(partition):
        raise ValueError(f"expected {name} of {plural(len(partition), 'image')}, got {sum(map(len, maps))}")
    device = partition.offsets.device
    if any(one.device != device for one in maps):
        raise ValueError(f"expected {name} on {device}, where the partition is, got {maps[0].device}")
    rows = list(partition._rows())
    if isinstance(given, Tensor):
        return list(zip(given.split([len(block) for block in rows]), rows, strict=True))
    return list(zip(maps, [image[None] for block in rows for image in block], strict=True))


def _rows(pairs: list[tuple[Tensor, Tensor]]) -> Tensor:
    """The vectors of all cells, ``(b, C, h, w)`` or ``(b, h, w)`` each to ``(Σb·h·w, C)``."""
    return torch.cat([(maps if maps.ndim == 4 else maps[:, None]).movedim(1, -1).flatten(0, 2) for maps, _ in pairs])


def _even(pixels: int, cells: int) -> Units:
    """Units in which an axis of equal cells has whole numbers."""
    common = gcd(pixels, cells)
    return cells // common, pixels // common


def _overlaps(rows: Tensor, tall: Units, wide: Units) -> tuple[Tensor, Tensor, Tensor]:
    """Each pair of a region and a cell that overlap, by region and then by cell, with the area that they share.

    Shape:
        rows ``(b, H, W)`` to the rows, the cells of b · h · w and the areas of K pairs, ``(K,)`` int64.
    """
    y, i, heights = _pieces(rows.shape[1], *tall, rows.device)
    x, j, widths = _pieces(rows.shape[2], *wide, rows.device)
    # Images stay apart: cells of image b start at b · h · w.
    images = torch.arange(len(rows), device=rows.device)[:, None, None]
    h, w = (-(-pixels * pixel // cell) for pixels, (pixel, cell) in zip(rows.shape[1:], (tall, wide), strict=True))
    cells = (images * h + i[:, None]) * w + j
    keys = rows[:, y][:, :, x] * (len(rows) * h * w) + cells
    pairs, numbers = keys.unique(return_inverse=True)
    areas = (heights[:, None] * widths).expand(keys.shape)
    shared = areas.new_zeros(len(pairs)).index_add(0, numbers.flatten(), areas.flatten())
    return pairs // (len(rows) * h * w), pairs % (len(rows) * h * w), shared


def _pieces(pixels: int, pixel: int, cell: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The pixel and the cell of each piece of an axis that is cut at both their edges, and its length, ``(K,)``."""
    end = pixels * pixel
    edges = torch.cat([torch.arange(0, end + 1, pixel), torch.arange(0, end, cell)]).unique().to(device)
    return edges[:-1] // pixel, edges[:-1] // cell, edges.diff()


def _sums(values: Tensor, rows: Tensor, count: int) -> Tensor:
    """The sum of the values of each row, ``(K, C)`` to ``(count, C)``, added in their order."""
    start = values.new_zeros(count, values.shape[1])
    if values.is_cuda:  # where index_add has no order; this sorts
        return start.index_put((rows,), values, accumulate=True)
    return start.index_add(0, rows, values)


def _largest(values: Tensor, rows: Tensor, count: int) -> Tensor:
    """The largest value of each row, ``(K, C)`` to ``(count, C)``."""
    start = values.new_zeros(count, values.shape[1])
    return start.scatter_reduce(0, rows[:, None].expand_as(values), values, "amax", include_self=False)


def _majority(labels: Tensor, rows: Tensor, count: int) -> Tensor:
    """The most frequent label of each row, the smallest of several, ``(K,)`` to ``(count,)``."""
    names, numbers = labels.unique(return_inverse=True)
    pairs, votes = (rows * len(names) + numbers).unique(return_counts=True)
    row, number = pairs // len(names), pairs % len(names)
    ahead = votes == votes.new_zeros(count).scatter_reduce(0, row, votes, "amax")[row]
    first = torch.full_like(number[:1], len(names)).expand(count).scatter_reduce(0, row[ahead], number[ahead], "amin")
    return names[first]
