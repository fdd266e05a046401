"""Connected components in torch, on any device, for operations that need no compiled kernel."""

import torch
from torch import Tensor


def join(count: int, u: Tensor, v: Tensor) -> Tensor:
    """The smallest vertex that each of ``count`` vertices is connected to by the edges (u, v)."""
    smallest = torch.arange(count, device=u.device)
    while True:
        joined = smallest.scatter_reduce(0, u, smallest[v], "amin").scatter_reduce(0, v, smallest[u], "amin")
        joined = joined[joined]
        if torch.equal(joined, smallest):
            return smallest
        smallest = joined


def pieces(fine: Tensor, coarse: Tensor) -> tuple[Tensor, Tensor]:
    """The 4-connected pieces in which both label maps are constant, numbered by their first pixels.

    Shape:
        fine and coarse ``(B, H, W)`` to labels ``(B, H, W)`` int32 and counts ``(B,)`` int64.
    """
    batch = len(fine)
    pixels = torch.arange(fine.numel(), device=fine.device).view(fine.shape)
    u, v = [], []
    for first, second in (((..., slice(None, -1)), (..., slice(1, None))),
                          ((slice(None), slice(None, -1)), (slice(None), slice(1, None)))):
        same = (fine[first] == fine[second]) & (coarse[first] == coarse[second])
        u.append(pixels[first][same])
        v.append(pixels[second][same])
    roots = join(fine.numel(), torch.cat(u), torch.cat(v)).view(batch, -1)
    firsts = roots == pixels.view(batch, -1)
    numbers = firsts.cumsum(1) - 1  # (B, P): in the numbering of each image
    return numbers.flatten()[roots].view(fine.shape).int(), firsts.sum(1)
