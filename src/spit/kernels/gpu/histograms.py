"""The histograms of φ in Triton: ``reference/features.py``, one warp per region."""

import math
from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.gpu.regions import locate, owners, region_boxes

RADIUS = math.sqrt(2 * math.log(1e8))  # in σ: beyond it the kernel is below 1e-8 and a bin is skipped
ROWS, COLUMNS = 16, 32  # of a step of the position histogram
CHUNK = 32  # pixels of a box per step of the gradient histogram
DENSE = 16  # pixels per product of two matrices
HELD = 128  # gradients that are listed before they are added up
NOWHERE = tl.constexpr(1e9)  # a value so far away that its kernel is 0 at every bin
WINDOW = 4  # bins a side around a gradient of 0, where five in six pixels of a photo are


def position_histogram(labels: Tensor, offsets: Tensor, bins: int, sigma: float, boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.position_histogram`."""
    boxes = region_boxes(labels, offsets) if boxes is None else boxes
    histogram = torch.empty(len(boxes), bins * bins, device=labels.device)
    write_positions(histogram, labels, offsets, boxes, owners(offsets, len(boxes)), bins, sigma)
    return histogram


def gradient_histogram(gradients: Tensor, labels: Tensor, offsets: Tensor, bins: int, sigma: float,
                       boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.gradient_histogram`."""
    boxes = region_boxes(labels, offsets) if boxes is None else boxes
    histogram = torch.empty(len(boxes), bins * bins, device=labels.device)
    write_gradients(histogram, gradients, labels, offsets, boxes, owners(offsets, len(boxes)), bins, sigma)
    return histogram


def write_positions(out: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, owner: Tensor, bins: int,
                    sigma: float) -> None:
    """:func:`position_histogram` into the columns ``out`` of a matrix, ``(ΣN, K·K)``."""
    _, height, width = labels.shape
    y_table, x_table = _position_tables(height, width, bins, sigma, labels.device)
    _position_histogram[(len(boxes),)](
        labels.contiguous(), offsets, boxes.contiguous(), owner, y_table, x_table, out, height, width, out.stride(0),
        K=bins, PADDED=_padded(bins), ROWS=ROWS, COLUMNS=COLUMNS, num_warps=1, num_stages=1)


def write_gradients(out: Tensor, gradients: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, owner: Tensor,
                    bins: int, sigma: float) -> None:
    """:func:`gradient_histogram` into the columns ``out`` of a matrix, ``(ΣN, K·K)``."""
    _, height, width = labels.shape
    first = max(bins // 2 - WINDOW // 2, 0)
    # The list of a region's gradients takes the place of its histogram, which is written last, if it fits there.
    held = out if bins * bins >= 2 * HELD else torch.empty(len(boxes), 2 * HELD, device=labels.device)
    _gradient_histogram[(len(boxes),)](
        gradients.contiguous(), labels.contiguous(), offsets, boxes.contiguous(), owner, held, out, height, width,
        held.stride(0), out.stride(0), *_window(first, bins, sigma),
        math.sqrt(0.5 * math.log2(math.e)) / sigma if sigma else 0.0,
        K=bins, PADDED=_padded(bins), FIRST=first, WINDOW=WINDOW, EMPIRICAL=sigma == 0, CHUNK=CHUNK, DENSE=DENSE,
        HELD=HELD, num_warps=1, num_stages=1)


def _padded(bins: int) -> int:
    """Bins of a matrix product, which has sides of at least 16."""
    return max(int(triton.next_power_of_2(bins)), 16)


def _window(first: int, bins: int, sigma: float) -> tuple[float, float]:
    """The least value, and the end, of those whose kernel reaches no bin outside the window that starts at ``first``.

    A value reaches its own cell's bin and ``reach`` bins to each side: the next is beyond the radius from anywhere in
    the cell. In an empirical histogram, values are numbers of cells.
    """
    if sigma == 0:
        return float(first), float(first + WINDOW)
    reach = max(math.ceil(RADIUS * sigma * bins / 2 - 0.5), 0)
    low = (first + reach) * 2 / bins - 1 if first > 0 else -math.inf
    high = (first + WINDOW - reach) * 2 / bins - 1 if first + WINDOW < bins else math.inf
    return low, high


@lru_cache(maxsize=64)
def _position_tables(height: int, width: int, bins: int, sigma: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """The kernel of each row at each bin and that of each column, as the sum of two float16.

    Shape:
        ``(2, H + ROWS, PADDED)`` and ``(2, W + COLUMNS, PADDED)``, zero beyond the image and the bins.
    """
    tables = []
    for size, spare in ((height, ROWS), (width, COLUMNS)):
        longest = max(height, width)
        place = 2 * torch.arange(size, dtype=torch.float64) + 1 - size + longest  # (y' + 1)·max(H, W)
        if sigma == 0:
            weights = (place * bins).div(2 * longest, rounding_mode="floor")[:, None] == torch.arange(bins)
        else:
            centres = (2 * torch.arange(bins, dtype=torch.float64) + 1) / bins - 1
            weights = torch.exp(-((((place / longest - 1)[:, None] - centres) / sigma) ** 2) / 2)
        table = torch.zeros(2, size + spare, _padded(bins), dtype=torch.float16)
        table[0, :size, :bins] = weights
        table[1, :size, :bins] = weights.double() - table[0, :size, :bins].double()
        tables.append(table.to(device))
    return tables[0], tables[1]


@triton.jit
def _region(offsets, boxes, owner, height, width):
    """This program's region: its image, its label there, and the part of its box inside the image."""
    region = tl.program_id(0).to(tl.int64)
    image, label = locate(owner, offsets, region)
    top = tl.maximum(tl.load(boxes + region * 4), 0)
    left = tl.maximum(tl.load(boxes + region * 4 + 1), 0)
    bottom = tl.minimum(tl.load(boxes + region * 4 + 2), height)
    right = tl.minimum(tl.load(boxes + region * 4 + 3), width)
    return region, image, label, top, left, bottom, right


@triton.jit
def _store_means(row, total, size, bins, K: tl.constexpr):
    place = row + bins[:, None] * K + bins[None, :]
    tl.store(place, total / tl.maximum(size, 1), (bins[:, None] < K) & (bins[None, :] < K))


@triton.jit
def _halves(value):
    """A float32 as the sum of two float16, up to 2^-24 for values up to 1 and 2^-22 of larger ones."""
    high = value.to(tl.float16)
    return high, (value - high.to(tl.float32)).to(tl.float16)


@triton.jit
def _add_product(left, right, total):
    """left · right + total, from float16 products of both halves of each number; the smallest is left out."""
    left_high, left_low = _halves(left)
    right_high, right_low = _halves(right)
    total = tl.dot(left_high, right_high, total)
    total = tl.dot(left_high, right_low, total)
    return tl.dot(left_low, right_high, total)


@triton.jit
def _position_histogram(labels, offsets, boxes, owner, y_table, x_table, out, height, width, stride,
                        K: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Wyᵀ M Wx: the region's mask M between the kernels of its rows and of its columns.

    A product of float32 numbers is made of float16 ones: each number is the sum of two, and the mask is exact.
    """
    region, image, label, top, left, bottom, right = _region(offsets, boxes, owner, height, width)
    plane = labels + image * height * width
    bins = tl.arange(0, PADDED)
    y_low = (height + ROWS) * PADDED  # where a table has the second of its two numbers
    x_low = (width + COLUMNS) * PADDED
    total = tl.zeros((PADDED, PADDED), tl.float32)
    sizes = tl.zeros((COLUMNS,), tl.int32)
    for row in range(top, bottom, ROWS):
        y = row + tl.arange(0, ROWS)
        y_place = y_table + y[None, :] * PADDED + bins[:, None]
        for column in range(left, right, COLUMNS):
            x = column + tl.arange(0, COLUMNS)
            inside = (y[:, None] < bottom) & (x[None, :] < right)
            own = tl.load(plane + y[:, None] * width + x[None, :], inside, -1) == label
            sizes += tl.sum(own.to(tl.int32), 0)
            mask = own.to(tl.float16)
            x_place = x_table + x[:, None] * PADDED + bins[None, :]
            along = tl.dot(mask, tl.load(x_place))
            along = tl.dot(mask, tl.load(x_place + x_low), along)
            high, low = _halves(along)
            y_high = tl.load(y_place)
            total = tl.dot(y_high, high, total)
            total = tl.dot(y_high, low, total)
            total = tl.dot(tl.load(y_place + y_low), high, total)
    _store_means(out + region * stride, total, tl.sum(sizes, 0), bins, K)


@triton.jit
def _kernel(value, bin, scale, K: tl.constexpr, EMPIRICAL: tl.constexpr):
    """The weight of a value at a bin: exp(−d²/2σ²) as 2^(−(scale · d)²), or whether it is the value's cell."""
    if EMPIRICAL:
        weight = (value == bin).to(tl.float32)
    else:
        centre = (2 * bin + 1).to(tl.float32) / K - 1
        distance = value * scale - centre * scale
        weight = tl.exp2(-(distance * distance))
    return weight


@triton.jit
def _cell(value, K: tl.constexpr):
    """The number of the cell that has a value; its middle is added last, where nothing is rounded."""
    return tl.minimum(tl.maximum(tl.floor(value * (K * 0.5) + (K % 2) * 0.5) + K // 2, 0), K - 1)


@triton.jit
def _in_window(value, scale, K: tl.constexpr, FIRST: tl.constexpr, EMPIRICAL: tl.constexpr):
    """The weight of a value at each bin of the window."""
    first = tl.full((), FIRST, tl.int32)
    return (_kernel(value, first, scale, K, EMPIRICAL), _kernel(value, first + 1, scale, K, EMPIRICAL),
            _kernel(value, first + 2, scale, K, EMPIRICAL), _kernel(value, first + 3, scale, K, EMPIRICAL))


@triton.jit
def _add_outer(s, y, x):
    """Add the outer product of a pixel's weights to the sums of its own lane, row by row."""
    return (s[0] + y[0] * x[0], s[1] + y[0] * x[1], s[2] + y[0] * x[2], s[3] + y[0] * x[3],
            s[4] + y[1] * x[0], s[5] + y[1] * x[1], s[6] + y[1] * x[2], s[7] + y[1] * x[3],
            s[8] + y[2] * x[0], s[9] + y[2] * x[1], s[10] + y[2] * x[2], s[11] + y[2] * x[3],
            s[12] + y[3] * x[0], s[13] + y[3] * x[1], s[14] + y[3] * x[2], s[15] + y[3] * x[3])


@triton.jit
def _gradient_histogram(gradients, labels, offsets, boxes, owner, held, out, height, width, pitch, stride, low, high,
                        scale, K: tl.constexpr, PADDED: tl.constexpr, FIRST: tl.constexpr, WINDOW: tl.constexpr,
                        EMPIRICAL: tl.constexpr, CHUNK: tl.constexpr, DENSE: tl.constexpr, HELD: tl.constexpr):
    """Σ of outer products of two kernels over the region's pixels.

    Pixels near 0, whose kernels reach no bin outside the window, are added to its 4 × 4 bins, lane by lane. The others
    are listed; the products of a full list are a product of two matrices with all bins.
    """
    region, image, label, top, left, bottom, right = _region(offsets, boxes, owner, height, width)
    labels += image * height * width
    y_plane = gradients + image * 2 * height * width
    x_plane = y_plane + height * width
    held += region * pitch
    bins = tl.arange(0, PADDED)
    total = tl.zeros((PADDED, PADDED), tl.float32)
    zero = tl.zeros((CHUNK,), tl.float32)
    sums = (zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero)
    sizes = tl.zeros((CHUNK,), tl.int32)
    across = tl.maximum(right - left, 1)
    area = tl.maximum(bottom - top, 0) * tl.maximum(right - left, 0)
    i = tl.arange(0, CHUNK)
    x = i % across
    pixel = (top + i // across) * width + left + x
    step = CHUNK % across
    jump = (CHUNK // across) * width + step
    start = 0
    while start < area:
        count = 0
        while (start < area) & (count <= HELD - CHUNK):
            inside = start + i < area
            own = tl.load(labels + pixel, inside, -1) == label
            dy = tl.load(y_plane + pixel, inside, 0.0).to(tl.float32)
            dx = tl.load(x_plane + pixel, inside, 0.0).to(tl.float32)
            if EMPIRICAL:
                dy = _cell(dy, K)
                dx = _cell(dx, K)
            sizes += own.to(tl.int32)
            near = own & (dy >= low) & (dy < high) & (dx >= low) & (dx < high)
            sums = _add_outer(sums, _in_window(tl.where(near, dy, NOWHERE), scale, K, FIRST, EMPIRICAL),
                              _in_window(tl.where(near, dx, 0.0), scale, K, FIRST, EMPIRICAL))
            far = own & (near == 0)
            place = held + count + tl.cumsum(far.to(tl.int32), 0) - 1
            tl.store(place, dy, far)
            tl.store(place + HELD, dx, far)
            count += tl.sum(far.to(tl.int32), 0)
            start += CHUNK
            x += step
            pixel += jump
            over = x >= across
            x = tl.where(over, x - across, x)
            pixel = tl.where(over, pixel + width - across, pixel)
        tl.debug_barrier()
        for begin in range(0, count, DENSE):
            j = begin + tl.arange(0, DENSE)
            dy = tl.load(held + j, j < count, NOWHERE)
            dx = tl.load(held + HELD + j, j < count, 0.0)
            rows = _kernel(dy[None, :], bins[:, None], scale, K, EMPIRICAL)
            columns = _kernel(dx[:, None], bins[None, :], scale, K, EMPIRICAL)
            total = _add_product(rows, columns, total)
        tl.debug_barrier()
    for k in tl.static_range(WINDOW * WINDOW):
        here = (bins[:, None] == FIRST + k // WINDOW) & (bins[None, :] == FIRST + k % WINDOW)
        total += tl.where(here, tl.sum(sums[k], 0), 0.0)
    _store_means(out + region * stride, total, tl.sum(sizes, 0), bins, K)
