"""Attention inside each image of a packed batch: no token sees another image, nor padding.

:func:`packed_attention` chooses the method:

=============================  ==========================================================
all images of equal length     one dense SDPA call
CUDA, half precision           :mod:`spit.backbone.kernels`, or ``varlen_attn`` for heads of other widths
CUDA, float32; compiled code   SDPA on a padded copy, its padded keys behind a mask
CPU and the rest               one SDPA call an image
=============================  ==========================================================
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit.backbone.linear import Linear, product
from spit.backbone.packed import attend
from spit.backbone.spans import Spans
from spit.kernels.recording import STEP, round_up

HAS_TRITON = find_spec("triton") is not None


class Heads(NamedTuple):
    """Queries, keys and values of one attention call, and its result before the projection.

    Shape:
        ``(ΣN, heads, d)`` each.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    answer: Tensor


class Attention(nn.Module):
    """Multi-head self-attention over packed tokens.

    Args:
        width, qkv_bias: see :class:`~spit.backbone.TransformerOptions`.
        heads: attention heads; each has ``d = D / heads`` columns.

    Shape:
        values ``(ΣN, D)`` to ``(ΣN, D)``; rows beyond those of the spans belong to no image, and mean nothing.
    """

    def __init__(self, width: int, heads: int, qkv_bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = Linear(width, 3 * width, bias=qkv_bias)
        self.projection = Linear(width, width)

    def forward(self, values: Tensor, spans: Spans, observe: Callable[[Heads], None] | None = None) -> Tensor:
        rows = len(spans.image_of)
        packed = self.qkv(values).unflatten(-1, (3, self.heads, -1))  # (ΣN, 3, heads, d)
        heads = packed_attention(packed[:rows], spans)
        if observe is not None:
            observe(heads)
        mixed = heads.answer.flatten(1)
        answer: Tensor = self.projection(mixed if rows == len(values) else F.pad(mixed, (0, 0, 0, len(values) - rows)))
        return answer

    def first(self, values: Tensor, spans: Spans) -> Tensor:
        """:meth:`forward` for the first row of each image alone, ``(ΣN, D)`` to ``(B, D)``."""
        width = values.shape[1]
        weight, bias = self.qkv.weight.split([width, 2 * width]), (None, None)
        if self.qkv.bias is not None:
            bias = self.qkv.bias.split([width, 2 * width])
        query = product(values[spans.offsets[:-1]], weight[0], bias[0]).unflatten(-1, (self.heads, -1))
        both = product(values, weight[1], bias[1])[: len(spans.image_of)]
        key, value = both.unflatten(-1, (2, self.heads, -1)).unbind(1)
        mixed: Tensor = self.projection(first_attention(query, key, value, spans).flatten(1))
        return mixed


def packed_attention(packed: Tensor, spans: Spans) -> Heads:
    """:func:`ragged_attention` of rows that hold query, key and value side by side, ``(ΣN, 3, heads, d)``."""
    query, key, value = packed.unbind(1)
    if spans.uniform or not _takes_triton(packed):
        return Heads(query, key, value, ragged_attention(query, key, value, spans))
    longest = round_up(spans.longest, STEP)  # so that compiled code sees few different values
    return Heads(query, key, value, attend(packed, spans.offsets, longest)[0])


def ragged_attention(query: Tensor, key: Tensor, value: Tensor, spans: Spans) -> Tensor:
    """``softmax(q kᵀ / √d) v`` inside each image.

    Shape:
        query, key, value and the result ``(ΣN, heads, d)``.
    """
    if spans.uniform:
        return _dense(query, key, value, spans)
    if _takes_varlen(query):
        return _varlen(query, key, value, spans)
    if query.is_cuda or torch.compiler.is_compiling() or not spans.counts:
        return _padded(query, key, value, spans)
    return _looped(query, key, value, spans)


def first_attention(query: Tensor, key: Tensor, value: Tensor, spans: Spans) -> Tensor:
    """:func:`ragged_attention` for one query of each image.

    Shape:
        query and the result ``(B, heads, d)``, key and value ``(ΣN, heads, d)``.
    """
    if _takes_varlen(query):
        return _varlen(query, key, value, spans, torch.arange(len(spans) + 1, device=query.device, dtype=torch.int32))
    places = spans.padded_rows()
    k, v = (_pad(rows, places, spans) for rows in (key, value))
    # By hand: for few queries SDPA on a CPU sums in another order with another number of threads.
    scores = query[:, :, None] * query.shape[-1] ** -0.5 @ k.mT
    mixed: Tensor = scores.masked_fill(~spans.padding_mask(), -torch.inf).softmax(-1) @ v
    return mixed[:, :, 0]


def attention_maps(query: Tensor, key: Tensor, spans: Spans) -> tuple[Tensor, ...]:
    """``softmax(q kᵀ / √d)`` of each image, in float32.

    Shape:
        query, key ``(ΣN, heads, d)`` to one ``(heads, N, N)`` an image; each row sums to 1.
    """
    scale = query.shape[-1] ** -0.5
    pairs = zip(*(torch.split(rows.float(), list(spans.counts)) for rows in (query, key)), strict=True)
    return tuple((q.transpose(0, 1) @ k.permute(1, 2, 0) * scale).softmax(-1) for q, k in pairs)


def _dense(query: Tensor, key: Tensor, value: Tensor, spans: Spans) -> Tensor:
    shape = (len(spans), spans.longest, *query.shape[1:])
    q, k, v = (rows.view(shape).transpose(1, 2) for rows in (query, key, value))  # (B, heads, N, d)
    return _attend(q, k, v).transpose(1, 2).flatten(0, 1)


def _looped(query: Tensor, key: Tensor, value: Tensor, spans: Spans) -> Tensor:
    images = zip(*(torch.split(rows, list(spans.counts)) for rows in (query, key, value)), strict=True)
    return torch.cat([
        _attend(*(rows.transpose(0, 1)[None] for rows in image))[0].transpose(0, 1)
        for image in images
    ])


def _attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """SDPA of ``(B, heads, N, d)``; by hand for bf16 on a CPU, where its kernel is no faster than in float32."""
    if query.device.type != "cpu" or query.dtype != torch.bfloat16 or torch.is_grad_enabled():
        return F.scaled_dot_product_attention(query, key, value)
    with torch.autocast("cpu", enabled=False):  # which would have float32 for the softmax
        mixed: Tensor = (query * query.shape[-1] ** -0.5 @ key.mT).softmax(-1) @ value
        return mixed


def _padded(query: Tensor, key: Tensor, value: Tensor, spans: Spans) -> Tensor:
    places = spans.padded_rows()
    q, k, v = (_pad(rows, places, spans) for rows in (query, key, value))
    answer = F.scaled_dot_product_attention(q, k, v, attn_mask=spans.padding_mask())
    return answer.transpose(1, 2).flatten(0, 1)[places.clamp(max=len(spans) * spans.longest - 1)]


def _pad(rows: Tensor, places: Tensor, spans: Spans) -> Tensor:
    """Packed rows ``(ΣN, heads, d)`` as a padded batch ``(B, heads, longest, d)``."""
    size = len(spans) * spans.longest
    empty = rows.new_zeros(size + 1, *rows.shape[1:])  # the last for rows of no image
    padded = empty.index_copy(0, places, rows)[:size]
    return padded.view(len(spans), spans.longest, *rows.shape[1:]).transpose(1, 2)


def _varlen(query: Tensor, key: Tensor, value: Tensor, spans: Spans, queries: Tensor | None = None) -> Tensor:
    """Attention of packed rows; ``queries`` are the offsets of the queries if they are not those of the keys."""
    from torch.nn.attention.varlen import varlen_attn  # slow to import, and only CUDA needs it

    ends = spans.offsets
    longest = round_up(spans.longest, STEP)  # so that compiled code sees few different values
    answer = (varlen_attn(query, key, value, ends, ends, longest, longest) if queries is None
              else varlen_attn(query, key, value, queries, ends, 1, longest))
    return answer if isinstance(answer, Tensor) else answer[0]


def _takes_varlen(query: Tensor) -> bool:
    """Whether flash attention supports this dtype, head width and device."""
    width = query.shape[-1]
    return _has_half_products(query) and width % 8 == 0 and width <= 256


def _takes_triton(packed: Tensor) -> bool:
    """Whether :mod:`spit.backbone.kernels` supports this dtype, head width and device."""
    return _has_half_products(packed) and packed.shape[-1] in (16, 32, 64, 128) and HAS_TRITON


def _has_half_products(rows: Tensor) -> bool:
    return (rows.is_cuda and rows.dtype in (torch.bfloat16, torch.float16)
            and torch.cuda.get_device_capability(rows.device) >= (8, 0))
