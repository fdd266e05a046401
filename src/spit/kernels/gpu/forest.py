"""From chosen edges to numbered trees in Triton: the connected components Ê₊ of §2.2."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from spit.kernels.gpu.launch import BLOCK, blocks


def components(chosen: Tensor, offsets: Tensor, longest: int, sums: Tensor,
               words: int) -> tuple[Tensor, Tensor, Tensor]:
    """Ê₊: follow the choices to their roots, and number the roots in order.

    Args:
        longest: upper bound on the vertices of an image.
        sums: set to 0 in passing, as far as the trees can need them; ``words`` numbers belong to one tree.

    Shape:
        chosen ``(≥ ΣV,)`` int32, offsets ``(B + 1,)`` int64, sums ``(capacity · words,)`` int64; roots and
        numbers are as long as chosen, int32, numbers set at roots alone; the new offsets are ``(B + 1,)`` int64.
    """
    batch, chunks = len(offsets) - 1, blocks(longest)
    roots, numbers = torch.empty_like(chosen), torch.empty_like(chosen)
    counts = torch.empty(batch * chunks, dtype=torch.int32, device=chosen.device)
    _find_roots[(chunks, batch)](chosen, offsets, roots, counts, sums, len(sums), words, BLOCK)
    before = torch.zeros(batch * chunks + 1, dtype=torch.int64, device=chosen.device)
    torch.cumsum(counts, 0, out=before[1:])
    _number_roots[(chunks, batch)](roots, offsets, before, numbers, BLOCK)
    return roots, numbers, before[::chunks].contiguous()


@triton.jit
def _find_roots(chosen, offsets, roots, counts, sums, length, WORDS: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(1)
    v = (tl.load(offsets + image) + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int32)
    inside = v < tl.load(offsets + image + 1)
    here = v
    there = tl.load(chosen + v, inside, 0)
    root = v
    searching = inside & (there != here)
    while tl.max(searching.to(tl.int32), 0) > 0:
        beyond = tl.load(chosen + there, searching, 0)
        pair = searching & (beyond == here)
        top = searching & (beyond == there)
        root = tl.where(pair, tl.minimum(here, there), tl.where(top, there, root))
        searching = searching & (beyond != here) & (beyond != there)
        here = tl.where(searching, there, here)
        there = tl.where(searching, beyond, there)
    tl.store(roots + v, root, inside)
    for w in tl.static_range(WORDS):
        place = v.to(tl.int64) * WORDS + w
        tl.store(sums + place, tl.zeros((BLOCK,), tl.int64), inside & (place < length))
    count = tl.sum((inside & (root == v)).to(tl.int32), 0)
    tl.store(counts + image * tl.num_programs(0) + tl.program_id(0), count)


@triton.jit
def _number_roots(roots, offsets, before, numbers, BLOCK: tl.constexpr):
    image = tl.program_id(1)
    v = (tl.load(offsets + image) + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int32)
    inside = v < tl.load(offsets + image + 1)
    is_root = (inside & (tl.load(roots + v, inside, -1) == v)).to(tl.int32)
    first = tl.load(before + image * tl.num_programs(0) + tl.program_id(0)).to(tl.int32)
    tl.store(numbers + v, first + tl.cumsum(is_root, 0) - 1, is_root > 0)
