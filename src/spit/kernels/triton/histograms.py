"""The histograms of φ in Triton: ``reference/features.py``, one warp per region."""

import math
from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.triton.regions import locate, owners, region_boxes

RADIUS = math.sqrt(2 * math.log(1e8))  # in σ: beyond it the kernel is below 1e-8 and a bin is skipped
ROWS, COLUMNS = 16, 32  # of a step of the position histogram
STEP = 4  # rows of a box, of LANES columns, that the gradient histogram looks through at once
LANES = 32
DENSE = 16  # pixels per product of two matrices
HELD = 256  # pixels that are listed before they are added up
NOWHERE = tl.constexpr(1e9)  # a value so far away that its kernel is 0 at every bin
WINDOWS = (4, 6)  # bins a side around a gradient of 0, where five in six pixels of a photo are


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
    first, window, low, high = _window(bins, sigma)
    # The list of a region's pixels takes the place of its histogram, which is written last, if it fits there.
    fits = out.dtype == torch.float32 and bins * bins >= HELD
    held = out.view(torch.int32) if fits else torch.empty(len(boxes), HELD, dtype=torch.int32, device=labels.device)
    _gradient_histogram[(len(boxes),)](
        gradients.contiguous(), labels.contiguous(), offsets, boxes.contiguous(), owner, held, out, height, width,
        held.stride(0), out.stride(0), low, high, math.sqrt(0.5 * math.log2(math.e)) / sigma if sigma else 0.0,
        K=bins, PADDED=_padded(bins), FIRST=first, WINDOW=window, EMPIRICAL=sigma == 0, STEP=STEP, LANES=LANES,
        DENSE=DENSE, HELD=HELD, num_warps=1, num_stages=1)


def _padded(bins: int) -> int:
    """Bins of a matrix product, which has sides of at least 16."""
    return max(int(triton.next_power_of_2(bins)), 16)


def _window(bins: int, sigma: float) -> tuple[int, int, float, float]:
    """A window in the middle: its first bin, its size, and the values from the least to the end whose kernels reach no
    bin outside it.

    A value reaches its own cell's bin and ``reach`` bins to each side: the next is beyond the radius from anywhere in
    the cell. The window has room for two cells of values; if that is too large, no value is in it. In an empirical
    histogram, values are numbers of cells.
    """
    reach = max(math.ceil(RADIUS * sigma * bins / 2 - 0.5), 0)
    window = next((size for size in WINDOWS if size >= 2 * (reach + 1)), WINDOWS[0])
    first = max(bins // 2 - window // 2, 0)
    if sigma == 0:
        return first, window, float(first), float(first + window)
    low = (first + reach) * 2 / bins - 1 if first > 0 else -math.inf
    high = (first + window - reach) * 2 / bins - 1 if first + window < bins else math.inf
    return first, window, low, high


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
def _position_histogram(labels, offsets, boxes, owner, y_table, x_table, out, height, width, stride,
                        K: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Wyᵀ M Wx: the region's mask M between the kernels of its rows and of its columns.

    A product of float32 numbers is made of float16 ones: each number is the sum of two, and the mask is exact. Sums of
    products are cut off, not rounded, so only a few are added up before an addition that rounds.
    """
    region, image, label, top, left, bottom, right = _region(offsets, boxes, owner, height, width)
    plane = labels + image * height * width
    bins = tl.arange(0, PADDED)
    y_low = (height + ROWS) * PADDED  # where a table has the second of its two numbers
    x_low = (width + COLUMNS) * PADDED
    total = tl.zeros((PADDED, PADDED), tl.float32)
    rest = tl.zeros((PADDED, PADDED), tl.float32)
    sizes = tl.zeros((COLUMNS,), tl.int32)
    for row in range(top, bottom, ROWS):
        y = row + tl.arange(0, ROWS)
        y_place = y_table + y[None, :] * PADDED + bins[:, None]
        band = tl.zeros((PADDED, PADDED), tl.float32)
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
            band = tl.dot(y_high, high, band)
            rest = tl.dot(y_high, low, rest)
            rest = tl.dot(tl.load(y_place + y_low), high, rest)
        total += band
    _store_means(out + region * stride, total + rest, tl.sum(sizes, 0), bins, K)


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
def _in_window(value, scale, K: tl.constexpr, FIRST: tl.constexpr, WINDOW: tl.constexpr, EMPIRICAL: tl.constexpr):
    """The weight of a value at each bin of the window."""
    weights = tl.tuple([])
    for k in tl.static_range(WINDOW):
        weights += (_kernel(value, tl.full((), FIRST + k, tl.int32), scale, K, EMPIRICAL),)
    return weights


@triton.jit
def _add_outer(sums, y, x, WINDOW: tl.constexpr):
    """Add the outer product of a pixel's weights to the sums of its own lane, row by row."""
    added = tl.tuple([])
    for k in tl.static_range(WINDOW * WINDOW):
        added += (sums[k] + y[k // WINDOW] * x[k % WINDOW],)
    return added


@triton.jit
def _rows(labels, row, column, bottom, right, width, STEP: tl.constexpr, LANES: tl.constexpr):
    """The labels of a few rows of a box, −1 beyond it."""
    x = column + tl.arange(0, LANES)
    rows = tl.tuple([])
    for k in tl.static_range(STEP):
        rows += (tl.load(labels + (row + k) * width + x, (x < right) & (row + k < bottom), -1),)
    return rows


@triton.jit
def _gradients_at(planes, held, j, count, pixels, K: tl.constexpr, EMPIRICAL: tl.constexpr):
    """Listed pixels and their gradients, or the numbers of their cells; behind the list they are far from all bins."""
    pixel = tl.load(held + j, j < count, 0)
    dy = tl.load(planes + pixel, j < count, NOWHERE).to(tl.float32)
    dx = tl.load(planes + pixels + pixel, j < count, NOWHERE).to(tl.float32)
    if EMPIRICAL:
        dy = tl.where(j < count, _cell(dy, K), NOWHERE)
        dx = _cell(dx, K)
    return pixel, dy, dx


@triton.jit
def _gradient_histogram(gradients, labels, offsets, boxes, owner, held, out, height, width, pitch, stride, low, high,
                        scale, K: tl.constexpr, PADDED: tl.constexpr, FIRST: tl.constexpr, WINDOW: tl.constexpr,
                        EMPIRICAL: tl.constexpr, STEP: tl.constexpr, LANES: tl.constexpr, DENSE: tl.constexpr,
                        HELD: tl.constexpr):
    """Σ of outer products of two kernels over the region's pixels.

    The region's pixels are listed, since a box has two and a half times as many. Those with gradients near 0, whose
    kernels reach no bin outside the window, are added to its bins, lane by lane. The others take the front of the list;
    their products are a product of two matrices with all bins.
    """
    region, image, label, top, left, bottom, right = _region(offsets, boxes, owner, height, width)
    pixels = height * width
    labels += image * pixels
    planes = gradients + image * 2 * pixels
    held += region * pitch
    bins = tl.arange(0, PADDED)
    lane = tl.arange(0, LANES)
    total = tl.zeros((PADDED, PADDED), tl.float32)
    sums = tl.tuple([])
    for _ in tl.static_range(WINDOW * WINDOW):
        sums += (tl.zeros((LANES,), tl.float32),)
    size = 0
    row = top
    column = tl.where(top < bottom, left, right)
    ahead = _rows(labels, row, column, bottom, right, width, STEP, LANES)  # what is needed next is on its way
    while column < right:
        count = 0
        while (column < right) & (count <= HELD - STEP * LANES):
            first = row * width + column + lane
            here = ahead
            row += STEP
            column = tl.where(row < bottom, column, column + LANES)
            row = tl.where(row < bottom, row, top)
            ahead = _rows(labels, row, column, bottom, right, width, STEP, LANES)
            found = tl.zeros((LANES,), tl.int32)
            for k in tl.static_range(STEP):
                found += (here[k] == label).to(tl.int32)
            place = count + tl.cumsum(found, 0) - found
            for k in tl.static_range(STEP):
                tl.store(held + place, first + k * width, here[k] == label)
                place += (here[k] == label).to(tl.int32)
            count += tl.sum(found, 0)
        size += count
        tl.debug_barrier()
        others = 0
        pixel, dy, dx = _gradients_at(planes, held, lane, count, pixels, K, EMPIRICAL)
        for begin in range(0, count, LANES):
            later, later_dy, later_dx = _gradients_at(planes, held, begin + LANES + lane, count, pixels, K, EMPIRICAL)
            near = (dy >= low) & (dy < high) & (dx >= low) & (dx < high)
            sums = _add_outer(sums, _in_window(tl.where(near, dy, NOWHERE), scale, K, FIRST, WINDOW, EMPIRICAL),
                              _in_window(tl.where(near, dx, 0.0), scale, K, FIRST, WINDOW, EMPIRICAL), WINDOW)
            far = ((begin + lane < count) & (near == 0)).to(tl.int32)
            some = tl.sum(far, 0)
            if some > 0:
                tl.store(held + others + tl.cumsum(far, 0) - 1, pixel, far > 0)
                others += some
            pixel = later
            dy = later_dy
            dx = later_dx
        tl.debug_barrier()
        high_part = tl.zeros((PADDED, PADDED), tl.float32)
        low_part = tl.zeros((PADDED, PADDED), tl.float32)
        for begin in range(0, others, DENSE):
            j = begin + tl.arange(0, DENSE)
            _pixel, y, x = _gradients_at(planes, held, j, others, pixels, K, EMPIRICAL)
            rows_high, rows_low = _halves(_kernel(y[None, :], bins[:, None], scale, K, EMPIRICAL))
            columns_high, columns_low = _halves(_kernel(x[:, None], bins[None, :], scale, K, EMPIRICAL))
            high_part = tl.dot(rows_high, columns_high, high_part)
            low_part = tl.dot(rows_high, columns_low, low_part)
            low_part = tl.dot(rows_low, columns_high, low_part)
        total += high_part + low_part
        tl.debug_barrier()
    out += region * stride
    _store_means(out, total, size, bins, K)
    tl.debug_barrier()
    _add_window(out, sums, size, K, FIRST, WINDOW)


@triton.jit
def _add_window(out, sums, size, K: tl.constexpr, FIRST: tl.constexpr, WINDOW: tl.constexpr):
    """Add what the lanes have summed up to the bins of the window."""
    k = tl.arange(0, 16 if WINDOW == 4 else 64)
    total = tl.zeros(k.shape, tl.float32)
    for place in tl.static_range(WINDOW * WINDOW):
        total = tl.where(k == place, tl.sum(sums[place], 0), total)
    y, x = FIRST + k // WINDOW, FIRST + k % WINDOW
    exists = (k < WINDOW * WINDOW) & (y < K) & (x < K)
    here = out + y * K + x
    tl.store(here, tl.load(here, exists, 0.0) + total / tl.maximum(size, 1), exists)
