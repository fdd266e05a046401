"""φ in Triton: the functions of ``reference/features.py``. Histograms have a file of their own."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.triton.histograms import write_gradients, write_positions
from spit.kernels.triton.launch import BLOCK
from spit.kernels.triton.regions import locate, owners, strips

WARPS = 8  # of a colour patch


def region_features(images: Tensor, table: Tensor | None, gradients: Tensor | None, labels: Tensor, offsets: Tensor,
                    boxes: Tensor, windows: Tensor, resolution: int, masked: bool, position: tuple[int, float],
                    texture: tuple[int, float], dtype: torch.dtype = torch.float32) -> Tensor:
    """See :func:`spit.kernels.reference.region_features`."""
    channels = images.shape[1]
    widths = [channels * resolution**2, position[0] ** 2, 0 if gradients is None else texture[0] ** 2]
    features = torch.empty(len(boxes), sum(widths), dtype=dtype, device=labels.device)
    colors, positions, textures = features.split(widths, 1)
    labels, boxes, windows = labels.contiguous(), boxes.contiguous(), windows.contiguous()
    patches = colors.unflatten(1, (channels, resolution, resolution))
    owner = owners(offsets, len(boxes))
    _sample(images.contiguous(), patches, labels, offsets, windows, masked, owner, table)
    write_positions(positions, labels, offsets, boxes, owner, *position)
    if gradients is not None:
        write_gradients(textures, gradients, labels, offsets, boxes, owner, *texture)
    return features


def color_patches(images: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, resolution: int,
                  masked: bool = True) -> Tensor:
    """See :func:`spit.kernels.reference.color_patches`; without its derivative."""
    patches = images.new_empty(len(boxes), images.shape[1], resolution, resolution)
    _sample(images.contiguous(), patches, labels.contiguous(), offsets, boxes.contiguous(), masked,
            owners(offsets, len(boxes)))
    return patches


def scharr(images: Tensor) -> Tensor:
    """See :func:`spit.kernels.reference.scharr`."""
    images = images.contiguous()
    batch, channels, height, width = images.shape
    dtype, white = (torch.float32, 255) if images.dtype == torch.uint8 else (images.dtype, 1)
    gradients = torch.empty(batch, 2, height, width, dtype=dtype, device=images.device)
    grid, strip = strips(batch, height, width)
    _scharr[grid](images, gradients, height, width, 1.0 / (16 * channels * white), C=channels,
                  WHOLE=images.dtype == torch.uint8, **strip)
    return gradients


def _sample(images: Tensor, patches: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, masked: bool,
            owner: Tensor, table: Tensor | None = None) -> None:
    _, channels, height, width = images.shape
    resolution = patches.shape[-1]
    samples = triton.next_power_of_2(resolution * resolution)
    _color_patches[(len(boxes), triton.cdiv(samples, BLOCK))](
        images, patches, images if table is None else table, labels, offsets, boxes, owner, height, width,
        patches.stride(0), C=channels, K=resolution, TABLE=table is not None, MASKED=masked,
        BLOCK=min(samples, BLOCK), num_warps=WARPS)


@triton.jit
def _taps(i, start, end, K: tl.constexpr):
    """The two pixels around sample i and their weights; see the reference's ``_taps``."""
    place = tl.maximum((2 * i + 1) * (end - start) - K, 0)
    low = place // (2 * K)
    high = tl.minimum(low + 1, end - start - 1)
    weight = (place % (2 * K)).to(tl.float32) / (2 * K)
    return start + low, start + high, 1 - weight, weight


@triton.jit
def _color_patches(images, patches, table, labels, offsets, boxes, owner, height, width, stride, C: tl.constexpr,
                   K: tl.constexpr, TABLE: tl.constexpr, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    region = tl.program_id(0).to(tl.int64)
    image, label = locate(owner, offsets, region)
    sample = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = sample < K * K
    box = boxes + region * 4
    top, bottom, up, down = _taps(sample // K, tl.load(box), tl.load(box + 2), K)
    left, right, before, after = _taps(sample % K, tl.load(box + 1), tl.load(box + 3), K)
    labels += image * height * width
    a_pixel, a_own = _own(labels, top, left, height, width, inside, label, MASKED)
    b_pixel, b_own = _own(labels, top, right, height, width, inside, label, MASKED)
    c_pixel, c_own = _own(labels, bottom, left, height, width, inside, label, MASKED)
    d_pixel, d_own = _own(labels, bottom, right, height, width, inside, label, MASKED)
    for channel in tl.static_range(C):
        plane = images + (image * C + channel) * height * width
        place = patches + region * stride + channel * K * K + sample
        curve = table + channel * 256
        value = up * before * _color(plane, curve, a_pixel, a_own, TABLE)
        value += up * after * _color(plane, curve, b_pixel, b_own, TABLE)
        value += down * before * _color(plane, curve, c_pixel, c_own, TABLE)
        value += down * after * _color(plane, curve, d_pixel, d_own, TABLE)
        tl.store(place, value, inside)


@triton.jit
def _color(plane, curve, pixel, own, TABLE: tl.constexpr):
    """The colour of a pixel: as it is, or of 8 bits, looked up."""
    if TABLE:
        value = tl.load(curve + tl.load(plane + pixel, own, 0).to(tl.int32), own, 0.0)
    else:
        value = tl.load(plane + pixel, own, 0.0)
    return value


@triton.jit
def _own(labels, y, x, height, width, inside, label, MASKED: tl.constexpr):
    """A pixel's place in its plane, and whether it exists and, if masked, is in this region."""
    pixel = y * width + x
    exists = inside & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    if MASKED:
        exists = exists & (tl.load(labels + pixel, exists, -1) == label)
    return pixel, exists


@triton.jit
def _across(plane, y, x, pixels, width, C: tl.constexpr, WHOLE: tl.constexpr):
    """Of a row of the grey image, times C: (3, 10, 3) across, and the difference of the two sides."""
    row = plane + y * width
    left = _grey(row, tl.maximum(x - 1, 0), x < width, pixels, C, WHOLE)
    middle = _grey(row, x, x < width, pixels, C, WHOLE)
    right = _grey(row, tl.minimum(x + 1, width - 1), x < width, pixels, C, WHOLE)
    return 3 * (left + right) + 10 * middle, right - left


@triton.jit
def _grey(row, x, inside, pixels, C: tl.constexpr, WHOLE: tl.constexpr):
    total = tl.load(row + x, inside, 0).to(tl.int32 if WHOLE else tl.float32)
    for c in tl.static_range(1, C):
        total += tl.load(row + c * pixels + x, inside, 0).to(tl.int32 if WHOLE else tl.float32)
    return total


@triton.jit
def _scharr(images, out, height, width, scale, C: tl.constexpr, WHOLE: tl.constexpr, ROWS: tl.constexpr,
            BLOCK: tl.constexpr):
    image = tl.program_id(2).to(tl.int64)
    pixels = height * width
    plane = images + image * C * pixels
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * ROWS
    out += image * 2 * pixels + x
    above, above_change = _across(plane, tl.maximum(first - 1, 0), x, pixels, width, C, WHOLE)
    level, level_change = _across(plane, first, x, pixels, width, C, WHOLE)
    for y in range(first, tl.minimum(first + ROWS, height)):
        below, below_change = _across(plane, tl.minimum(y + 1, height - 1), x, pixels, width, C, WHOLE)
        dx = 3 * (above_change + below_change) + 10 * level_change
        tl.store(out + y * width, (below - above) * scale, x < width)
        tl.store(out + pixels + y * width, dx * scale, x < width)
        above = level
        above_change = level_change
        level = below
        level_change = below_change
