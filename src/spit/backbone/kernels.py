"""Attention within each image of a packed batch, in Triton (FlashAttention-2, Dao 2023).

Blocks of 64 rows: an image has a few hundred tokens, of which the last block of 128 would leave half empty.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 64  # of a block
LOG2E = math.log2(math.e)  # scores are in powers of two
ANSWER: dict[str, Any] = {"ROWS": ROWS, "num_warps": 4, "num_stages": 3}
ONE_STAGE: dict[str, Any] = {"ROWS": ROWS, "num_warps": 4, "num_stages": 1}  # its sums need the registers


def attend(packed: Tensor, offsets: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """``softmax(q kᵀ / √d) v`` within each image.

    Args:
        packed: query, key and value of each row, contiguous.
        longest: at least the rows of each image.

    Returns:
        The answer, and the logarithm to base 2 of each sum of the softmax, which :func:`attend_backward` needs.

    Shape:
        packed ``(ΣN, 3, heads, d)``, offsets ``(B + 1,)`` int32; the answer ``(ΣN, heads, d)``, sums ``(heads, ΣN)``.
    """
    rows, _, heads, width = packed.shape
    answer = packed.new_empty(rows, heads, width)
    sums = torch.empty(heads, rows, device=packed.device)
    _attend[_grid(offsets, longest, heads)](packed, offsets, answer, sums, rows, heads, width**-0.5 * LOG2E, D=width,
                                            **ANSWER)
    return answer, sums


def attend_backward(slope: Tensor, packed: Tensor, offsets: Tensor, longest: int, answer: Tensor,
                    sums: Tensor) -> Tensor:
    """The slopes of query, key and value, ``(ΣN, 3, heads, d)``, from the answer's, ``(ΣN, heads, d)`` contiguous."""
    rows, _, heads, width = packed.shape
    slopes, means = torch.empty_like(packed), torch.empty_like(sums)
    grid = _grid(offsets, longest, heads)
    _mean_slopes[(triton.cdiv(rows * heads, ROWS),)](answer, slope, means, rows, heads, D=width, ROWS=ROWS)
    given = (packed, offsets, slope, sums, means, slopes, rows, heads, width**-0.5, LOG2E)
    _slopes_of_keys[grid](*given, D=width, **ONE_STAGE)
    _slopes_of_queries[grid](*given, D=width, **ANSWER)
    return slopes


def _grid(offsets: Tensor, longest: int, heads: int) -> tuple[int, int]:
    return int(triton.cdiv(longest, ROWS)), heads * (len(offsets) - 1)


@triton.jit
def _place(offsets, heads):
    """The head, the first row of the image, and how many it has."""
    image, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    first = tl.load(offsets + image)
    return head, first.to(tl.int64), tl.load(offsets + image + 1) - first


@triton.jit
def _load_rows(start, rows, count, stride, D: tl.constexpr):
    return tl.load(start + rows[:, None] * stride + tl.arange(0, D)[None, :], mask=(rows < count)[:, None], other=0.0)


@triton.jit
def _store_rows(start, rows, count, stride, values, D: tl.constexpr):
    tl.store(start + rows[:, None] * stride + tl.arange(0, D)[None, :], values.to(start.dtype.element_ty),
             mask=(rows < count)[:, None])


@triton.jit
def _attend(packed, offsets, answer, sums, total, heads, scale,
            D: tl.constexpr, ROWS: tl.constexpr):
    head, first, count = _place(offsets, heads)
    if tl.program_id(0) * ROWS < count:
        stride = 3 * heads * D
        query_at = packed + first * stride + head * D
        mine = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        query = _load_rows(query_at, mine, count, stride, D)
        best, sum_ = tl.full([ROWS], -float("inf"), tl.float32), tl.zeros([ROWS], tl.float32)
        mixed = tl.zeros([ROWS, D], tl.float32)
        for start in range(0, count, ROWS):
            others = start + tl.arange(0, ROWS)
            key = _load_rows(query_at + heads * D, others, count, stride, D)
            value = _load_rows(query_at + 2 * heads * D, others, count, stride, D)
            scores = tl.where((others < count)[None, :], tl.dot(query, tl.trans(key)) * scale, -float("inf"))
            higher = tl.maximum(best, tl.max(scores, 1))
            weights, shrunk = tl.exp2(scores - higher[:, None]), tl.exp2(best - higher)
            sum_ = sum_ * shrunk + tl.sum(weights, 1)
            mixed = tl.dot(weights.to(value.dtype), value, mixed * shrunk[:, None])
            best = higher
        _store_rows(answer + (first * heads + head) * D, mine, count, heads * D, mixed / sum_[:, None], D)
        tl.store(sums + head.to(tl.int64) * total + first + mine, best + tl.log2(sum_), mask=mine < count)


@triton.jit
def _mean_slopes(answer, slope, means, total, heads, D: tl.constexpr, ROWS: tl.constexpr):
    """``Σ answer ⊙ slope`` of each row and head, ``(heads, ΣN)``: the mean slope of the row's weights."""
    at = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    products = (_load_rows(answer, at, total * heads, D, D).to(tl.float32)
                * _load_rows(slope, at, total * heads, D, D).to(tl.float32))
    tl.store(means + (at % heads) * total + at // heads, tl.sum(products, 1), mask=at < total * heads)


@triton.jit
def _slopes_of_keys(packed, offsets, slope, sums, means, slopes, total, heads, scale, log2e,
                    D: tl.constexpr, ROWS: tl.constexpr):
    """Keys' and values' slopes of a block of rows, over all queries of the image."""
    head, first, count = _place(offsets, heads)
    if tl.program_id(0) * ROWS < count:
        stride = 3 * heads * D
        query_at, slope_at = packed + first * stride + head * D, slope + (first * heads + head) * D
        row_at = head.to(tl.int64) * total + first
        mine = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        key = _load_rows(query_at + heads * D, mine, count, stride, D)
        value = _load_rows(query_at + 2 * heads * D, mine, count, stride, D)
        key_slope, value_slope = tl.zeros([ROWS, D], tl.float32), tl.zeros([ROWS, D], tl.float32)
        for start in range(0, count, ROWS):
            others = start + tl.arange(0, ROWS)
            query = _load_rows(query_at, others, count, stride, D)
            given = _load_rows(slope_at, others, count, heads * D, D)
            sum_ = tl.load(sums + row_at + others, mask=others < count, other=float("inf"))  # none beyond have weight
            mean = tl.load(means + row_at + others, mask=others < count, other=0.0)
            weights = tl.exp2(tl.dot(key, tl.trans(query)) * (scale * log2e) - sum_[None, :])
            value_slope = tl.dot(weights.to(given.dtype), given, value_slope)
            score_slopes = weights * (tl.dot(value, tl.trans(given)) - mean[None, :])
            key_slope = tl.dot(score_slopes.to(query.dtype), query, key_slope)
        written = slopes + first * stride + head * D
        _store_rows(written + heads * D, mine, count, stride, key_slope * scale, D)
        _store_rows(written + 2 * heads * D, mine, count, stride, value_slope, D)


@triton.jit
def _slopes_of_queries(packed, offsets, slope, sums, means, slopes, total, heads, scale, log2e,
                       D: tl.constexpr, ROWS: tl.constexpr):
    """Queries' slopes of a block of rows, over all keys of the image; keys beyond it are 0 and add nothing."""
    head, first, count = _place(offsets, heads)
    if tl.program_id(0) * ROWS < count:
        stride = 3 * heads * D
        query_at, row_at = packed + first * stride + head * D, head.to(tl.int64) * total + first
        mine = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        query = _load_rows(query_at, mine, count, stride, D)
        given = _load_rows(slope + (first * heads + head) * D, mine, count, heads * D, D)
        sum_ = tl.load(sums + row_at + mine, mask=mine < count, other=float("inf"))
        mean = tl.load(means + row_at + mine, mask=mine < count, other=0.0)
        query_slope = tl.zeros([ROWS, D], tl.float32)
        for start in range(0, count, ROWS):
            others = start + tl.arange(0, ROWS)
            key = _load_rows(query_at + heads * D, others, count, stride, D)
            value = _load_rows(query_at + 2 * heads * D, others, count, stride, D)
            weights = tl.exp2(tl.dot(query, tl.trans(key)) * (scale * log2e) - sum_[:, None])
            score_slopes = weights * (tl.dot(given, tl.trans(value)) - mean[:, None])
            query_slope = tl.dot(score_slopes.to(key.dtype), key, query_slope)
        _store_rows(slopes + first * stride + head * D, mine, count, stride, query_slope * scale, D)
