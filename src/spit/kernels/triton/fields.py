"""Records of a few numbers, read and written whole: sixteen bytes of a region are one access instead of four."""

import triton
import triton.language as tl


@triton.jit
def read(records, v, mask, N: tl.constexpr, WIDTH: tl.constexpr, STRIDE: tl.constexpr):
    """The first WIDTH fields of records v, as tensors of N numbers; 0 where masked.

    WIDTH is a power of two, and records begin STRIDE numbers apart.
    """
    place = records + v.to(tl.int64)[:, None] * STRIDE + tl.arange(0, WIDTH)[None, :]
    return _split(tl.load(place, mask[:, None], 0), N, WIDTH)


@triton.jit
def write(records, v, fields, mask, N: tl.constexpr, WIDTH: tl.constexpr, STRIDE: tl.constexpr):
    """Write the first WIDTH fields, each of N numbers, of records v."""
    place = records + v.to(tl.int64)[:, None] * STRIDE + tl.arange(0, WIDTH)[None, :]
    tl.store(place, _join(fields, N, WIDTH), mask[:, None])


@triton.jit
def _split(block, N: tl.constexpr, WIDTH: tl.constexpr):
    if WIDTH == 1:
        return (tl.reshape(block, (N,)),)
    else:
        even, odd = tl.split(tl.reshape(block, (N, WIDTH // 2, 2)))
        evens = _split(even, N, WIDTH // 2)
        odds = _split(odd, N, WIDTH // 2)
        fields = tl.tuple([])
        for k in tl.static_range(WIDTH // 2):
            fields += (evens[k], odds[k])
        return fields


@triton.jit
def _join(fields, N: tl.constexpr, WIDTH: tl.constexpr):
    if WIDTH == 1:
        return tl.reshape(fields[0], (N, 1))
    else:
        evens = tl.tuple([])
        odds = tl.tuple([])
        for k in tl.static_range(WIDTH // 2):
            evens += (fields[2 * k],)
            odds += (fields[2 * k + 1],)
        return tl.reshape(tl.join(_join(evens, N, WIDTH // 2), _join(odds, N, WIDTH // 2)), (N, WIDTH))
