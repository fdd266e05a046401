"""φ's kernels as they were at 2e56596, which ``benchmarks/phi.py`` times and compares beside the present ones."""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.gpu.launch import BLOCK, blocks
from spit.kernels.sampling import differentiable

CHUNK = 64  # pixels of a box per step of a histogram
PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # exact float32
NOWHERE = tl.constexpr(1e9)  # a value so far away that its kernel is 0 at every bin


def region_boxes(labels: Tensor, offsets: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.region_boxes`."""
    labels = labels.contiguous()
    _, height, width = labels.shape
    boxes = torch.zeros(int(offsets[-1]), 4, dtype=torch.int32, device=labels.device)
    boxes[:, :2] = height + width
    _boxes[(blocks(height * width), len(labels))](labels, offsets, boxes, height * width, width, BLOCK)
    empty = boxes[:, 2:3] == 0
    return boxes.masked_fill_(empty, 0)


def position_histogram(labels: Tensor, offsets: Tensor, bins: int, sigma: float, boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.position_histogram`."""
    _, height, width = labels.shape
    return _histogram(_position_histogram, labels, labels, offsets, boxes, bins, sigma,
                      longest=max(height, width), ROWS=16, COLUMNS=32)


def gradient_histogram(gradients: Tensor, labels: Tensor, offsets: Tensor, bins: int, sigma: float,
                       boxes: Tensor | None = None) -> Tensor:
    """See :func:`spit.kernels.reference.gradient_histogram`."""
    return _histogram(_gradient_histogram, gradients.contiguous(), labels, offsets, boxes, bins, sigma, CHUNK=CHUNK)


def scharr(images: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.scharr`."""
    images = images.contiguous()
    batch, channels, height, width = images.shape
    dtype, white = (torch.float32, 255) if images.dtype == torch.uint8 else (images.dtype, 1)
    gradients = torch.empty(batch, 2, height, width, dtype=dtype, device=images.device)
    _scharr[(blocks(height * width), batch)](images, gradients, height, width, 1.0 / (16 * channels * white),
                                             C=channels, BLOCK=BLOCK)
    return gradients


def _sample(images: Tensor, patches: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, masked: bool,
            adjoint: bool) -> None:
    _, channels, height, width = images.shape
    resolution = patches.shape[-1]
    samples = triton.next_power_of_2(resolution * resolution)
    _color_patches[(len(boxes), triton.cdiv(samples, BLOCK))](
        images, patches, labels, offsets, boxes, _image_of(offsets, len(boxes)), height, width, C=channels,
        K=resolution, MASKED=masked, ADJOINT=adjoint, BLOCK=min(samples, BLOCK), num_warps=4)


color_patches = differentiable(_sample)


def _histogram(kernel: Any, values: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor | None, bins: int,
               sigma: float, **options: int) -> Tensor:
    labels = labels.contiguous()
    _, height, width = labels.shape
    boxes = region_boxes(labels, offsets) if boxes is None else boxes.contiguous()
    histogram = torch.empty(len(boxes), bins * bins, device=labels.device)
    scale = math.sqrt(0.5 * math.log2(math.e)) / sigma if sigma else 0.0
    # One warp: the 16 × 16 product is the work of one, and more would only repeat it.
    kernel[(len(boxes),)](
        values, labels, offsets, boxes, _image_of(offsets, len(boxes)), histogram, height, width,
        scale, K=bins, PADDED=max(triton.next_power_of_2(bins), 16),
        EMPIRICAL=sigma == 0, num_warps=1, **options)
    return histogram


def _image_of(offsets: Tensor, total: int) -> Tensor:
    images = torch.arange(len(offsets) - 1, device=offsets.device, dtype=torch.int32)
    return images.repeat_interleave(offsets.diff(), output_size=total)


@triton.jit
def _boxes(labels, offsets, boxes, pixels, width, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    plane = labels + image * pixels
    label = tl.load(plane + i, inside, 0)
    box = boxes + (label + tl.load(offsets + image)) * 4
    y = i // width
    x = i % width
    # Only pixels at a region's border can be extreme. A bound only moves outwards, so if even an outdated one
    # holds, nothing needs to be written.
    north = inside & ((y == 0) | (tl.load(plane + i - width, inside & (y > 0), -1) != label))
    west = inside & ((x == 0) | (tl.load(plane + i - 1, inside & (x > 0), -1) != label))
    east = inside & ((x + 1 == width) | (tl.load(plane + i + 1, inside & (x + 1 < width), -1) != label))
    south = inside & ((i + width >= pixels) | (tl.load(plane + i + width, inside & (i + width < pixels), -1) != label))
    tl.atomic_min(box, y, north & (tl.load(box, north, 0) > y), sem="relaxed")
    tl.atomic_min(box + 1, x, west & (tl.load(box + 1, west, 0) > x), sem="relaxed")
    tl.atomic_max(box + 2, y + 1, south & (tl.load(box + 2, south, 0) < y + 1), sem="relaxed")
    tl.atomic_max(box + 3, x + 1, east & (tl.load(box + 3, east, 0) < x + 1), sem="relaxed")


@triton.jit
def _taps(i, start, end, K: tl.constexpr):
    """The two pixels around sample i and their weights; see the reference's ``_taps``."""
    place = tl.maximum((2 * i + 1) * (end - start) - K, 0)
    low = place // (2 * K)
    high = tl.minimum(low + 1, end - start - 1)
    weight = (place % (2 * K)).to(tl.float32) / (2 * K)
    return start + low, start + high, 1 - weight, weight


@triton.jit
def _color_patches(images, patches, labels, offsets, boxes, image_of, height, width, C: tl.constexpr,
                   K: tl.constexpr, MASKED: tl.constexpr, ADJOINT: tl.constexpr, BLOCK: tl.constexpr):
    region = tl.program_id(0).to(tl.int64)
    image = tl.load(image_of + region).to(tl.int64)
    label = (region - tl.load(offsets + image)).to(tl.int32)
    sample = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = sample < K * K
    box = boxes + region * 4
    top, bottom, up, down = _taps(sample // K, tl.load(box), tl.load(box + 2), K)
    left, right, before, after = _taps(sample % K, tl.load(box + 1), tl.load(box + 3), K)
    a_pixel, a_own = _own(labels, image, top, left, height, width, inside, label, MASKED)
    b_pixel, b_own = _own(labels, image, top, right, height, width, inside, label, MASKED)
    c_pixel, c_own = _own(labels, image, bottom, left, height, width, inside, label, MASKED)
    d_pixel, d_own = _own(labels, image, bottom, right, height, width, inside, label, MASKED)
    for channel in tl.static_range(C):
        plane = images + (image * C + channel) * height * width
        place = patches + (region * C + channel) * K * K + sample
        if ADJOINT:
            grad = tl.load(place, inside, 0.0)
            tl.atomic_add(plane + a_pixel, up * before * grad, a_own, sem="relaxed")
            tl.atomic_add(plane + b_pixel, up * after * grad, b_own, sem="relaxed")
            tl.atomic_add(plane + c_pixel, down * before * grad, c_own, sem="relaxed")
            tl.atomic_add(plane + d_pixel, down * after * grad, d_own, sem="relaxed")
        else:
            value = up * before * tl.load(plane + a_pixel, a_own, 0.0)
            value += up * after * tl.load(plane + b_pixel, b_own, 0.0)
            value += down * before * tl.load(plane + c_pixel, c_own, 0.0)
            value += down * after * tl.load(plane + d_pixel, d_own, 0.0)
            tl.store(place, value, inside)


@triton.jit
def _own(labels, image, y, x, height, width, inside, label, MASKED: tl.constexpr):
    """A pixel's place in its plane, and whether it exists and, if masked, is in this region."""
    pixel = y * width + x
    exists = inside & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    if MASKED:
        exists = exists & (tl.load(labels + image * height * width + pixel, exists, -1) == label)
    return pixel, exists


@triton.jit
def _gaussian(value, centre, scale):
    """exp(−d²/2σ²) as 2^(−(scale · d)²)."""
    distance = value * scale - centre * scale
    return tl.exp2(-(distance * distance))


@triton.jit
def _region(labels, offsets, boxes, image_of, height, width):
    """This program's region: its image, its label there, and the part of its box inside the image."""
    region = tl.program_id(0).to(tl.int64)
    image = tl.load(image_of + region).to(tl.int64)
    label = (region - tl.load(offsets + image)).to(tl.int32)
    top = tl.maximum(tl.load(boxes + region * 4), 0)
    left = tl.maximum(tl.load(boxes + region * 4 + 1), 0)
    bottom = tl.minimum(tl.load(boxes + region * 4 + 2), height)
    right = tl.minimum(tl.load(boxes + region * 4 + 3), width)
    return region, image, label, top, left, bottom, right


@triton.jit
def _store_means(out, region, total, size, bins, K: tl.constexpr):
    place = out + region * K * K + bins[:, None] * K + bins[None, :]
    tl.store(place, total / tl.maximum(size, 1), (bins[:, None] < K) & (bins[None, :] < K))


@triton.jit
def _position_histogram(values, labels, offsets, boxes, image_of, out, height, width, scale, longest,
                        K: tl.constexpr, PADDED: tl.constexpr, EMPIRICAL: tl.constexpr,
                        ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Gyᵀ M Gx: the region's mask M between the kernels of its rows and of its columns."""
    region, image, label, top, left, bottom, right = _region(labels, offsets, boxes, image_of, height, width)
    plane = labels + image * height * width
    bins = tl.arange(0, PADDED)
    centres = (2 * bins + 1).to(tl.float32) / K - 1
    total = tl.zeros((PADDED, PADDED), tl.float32)
    size = 0
    for row in range(top, bottom, ROWS):
        y = row + tl.arange(0, ROWS)
        along = tl.zeros((ROWS, PADDED), tl.float32)
        for column in range(left, right, COLUMNS):
            x = column + tl.arange(0, COLUMNS)
            inside = (y[:, None] < bottom) & (x[None, :] < right)
            own = tl.load(plane + y[:, None] * width + x[None, :], inside, -1) == label
            size += tl.sum(tl.sum(own.to(tl.int32), 1), 0)
            place = (2 * x + 1 - width)[:, None]
            if EMPIRICAL:
                kernel = ((place + longest) * K // (2 * longest) == bins[None, :]).to(tl.float32)
            else:
                kernel = _gaussian(place.to(tl.float32) / longest, centres[None, :], scale)
            along += tl.dot(own.to(tl.float32), kernel, input_precision=PRECISION)
        place = (2 * y + 1 - height)[None, :]
        if EMPIRICAL:
            kernel = ((place + longest) * K // (2 * longest) == bins[:, None]).to(tl.float32)
        else:
            kernel = _gaussian(place.to(tl.float32) / longest, centres[:, None], scale)
        total += tl.dot(kernel, along, input_precision=PRECISION)
    _store_means(out, region, total, size, bins, K)


@triton.jit
def _gradient_histogram(values, labels, offsets, boxes, image_of, out, height, width, scale,
                        K: tl.constexpr, PADDED: tl.constexpr, EMPIRICAL: tl.constexpr,
                        CHUNK: tl.constexpr):
    """Σ of outer products of two kernels over the region's pixels: a product of two matrices."""
    region, image, label, top, left, bottom, right = _region(labels, offsets, boxes, image_of, height, width)
    plane = labels + image * height * width
    gradients = values + image * 2 * height * width
    bins = tl.arange(0, PADDED)
    centres = (2 * bins + 1).to(tl.float32) / K - 1
    total = tl.zeros((PADDED, PADDED), tl.float32)
    size = 0
    box_width = right - left
    area = (bottom - top) * box_width
    for start in range(0, area, CHUNK):
        i = start + tl.arange(0, CHUNK)
        pixel = (top + i // box_width) * width + left + i % box_width
        inside = i < area
        own = inside & (tl.load(plane + pixel, inside, -1) == label)
        size += tl.sum(own.to(tl.int32), 0)
        dy = tl.load(gradients + pixel, own, NOWHERE)
        dx = tl.load(gradients + height * width + pixel, own, 0.0)
        if EMPIRICAL:
            row = tl.minimum(tl.maximum(tl.floor((dy + 1) * (K * 0.5)), 0), K - 1).to(tl.int32)
            column = tl.minimum(tl.maximum(tl.floor((dx + 1) * (K * 0.5)), 0), K - 1).to(tl.int32)
            rows = (own[None, :] & (row[None, :] == bins[:, None])).to(tl.float32)
            columns = (column[:, None] == bins[None, :]).to(tl.float32)
        else:
            rows = _gaussian(dy[None, :], centres[:, None], scale)
            columns = _gaussian(dx[:, None], centres[None, :], scale)
        total += tl.dot(rows, columns, input_precision=PRECISION)
    _store_means(out, region, total, size, bins, K)


@triton.jit
def _grey(image, pixels, i, mask, C: tl.constexpr):
    total = tl.load(image + i, mask, 0).to(tl.float32)
    for c in tl.static_range(1, C):
        total += tl.load(image + c * pixels + i, mask, 0).to(tl.float32)
    return total


@triton.jit
def _scharr(images, out, height, width, scale, C: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    pixels = height * width
    plane = images + image * C * pixels
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < pixels
    y = i // width
    x = i % width
    above = tl.maximum(y - 1, 0) * width
    level = y * width
    below = tl.minimum(y + 1, height - 1) * width
    left = tl.maximum(x - 1, 0)
    right = tl.minimum(x + 1, width - 1)
    nw = _grey(plane, pixels, above + left, inside, C)
    n = _grey(plane, pixels, above + x, inside, C)
    ne = _grey(plane, pixels, above + right, inside, C)
    w = _grey(plane, pixels, level + left, inside, C)
    e = _grey(plane, pixels, level + right, inside, C)
    sw = _grey(plane, pixels, below + left, inside, C)
    s = _grey(plane, pixels, below + x, inside, C)
    se = _grey(plane, pixels, below + right, inside, C)
    dy = (3 * (sw - nw) + 10 * (s - n) + 3 * (se - ne)) * scale
    dx = (3 * (ne - nw) + 10 * (e - w) + 3 * (se - sw)) * scale
    tl.store(out + image * 2 * pixels + i, dy, inside)
    tl.store(out + image * 2 * pixels + pixels + i, dx, inside)
