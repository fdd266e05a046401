"""Random sites of Voronoi cells, in plain torch with the same bits on every device."""

from functools import lru_cache

import torch
from torch import Tensor


def draw_sites(pixels: Tensor, cells: int, seed: int) -> Tensor:
    """Random distinct pixels of each image, drawn from its own 8-bit pixels and the seed, in raster order.

    Each pixel is as likely as any other. The fingerprint of an image is Σ hash(i) · x_i + hash(seed), modulo 2⁶⁴.

    Shape:
        pixels ``(B, C, H, W)`` uint8 to (y, x) ``(B, cells, 2)`` int32.
    """
    flat = pixels.flatten(1)  # (B, C·H·W)
    weights = _weights(flat.shape[1], flat.device)
    products = 2**18 if flat.is_cpu else 2**24  # at once, 8 bytes each: within a cache, or 128 MiB in few launches
    sums = [(images * weights).sum(1) for images in flat.split(max(products // len(weights), 1))]
    sites = _distinct(torch.cat(sums) + _signed(seed * 0x9E3779B97F4A7C15), cells, pixels[0, 0].numel())
    width = pixels.shape[3]
    return torch.stack([sites // width, sites % width], dim=-1).int()


@lru_cache(maxsize=1)
def _weights(length: int, device: torch.device) -> Tensor:
    return _mix(torch.arange(1, length + 1, device=device))


def _distinct(fingerprints: Tensor, cells: int, pixels: int) -> Tensor:
    """Distinct pixels in raster order, each as likely as any other: (B,) to (B, cells)."""
    if 2 * cells > pixels:
        signed = _draws(fingerprints, pixels) ^ _signed(2**63)  # in the order of the unsigned numbers
        return signed.argsort(dim=1)[:, :cells].sort(dim=1).values
    draws = 2 * cells
    while True:
        candidates, draw = _remainder(_draws(fingerprints, draws), pixels).sort(dim=1, stable=True)
        draw[:, 1:].masked_fill_(candidates[:, 1:] == candidates[:, :-1], draws)  # drawn before
        last = draw.sort(dim=1).values[:, cells - 1 : cells]
        sites = candidates[draw <= last]
        if len(sites) == len(fingerprints) * cells:
            return sites.view(-1, cells)
        draws *= 2  # which leaves the first draws, and what was enough, as they are


def _draws(fingerprints: Tensor, count: int) -> Tensor:
    """The first random numbers of each image, (B, count)."""
    return _mix(fingerprints[:, None] + torch.arange(count, device=fingerprints.device))


def _mix(x: Tensor) -> Tensor:
    """SplitMix64 (Steele, Lea and Flood, 2014): a well-mixed 64-bit number for each counter.

    The bits are those of unsigned numbers; torch computes with signed ones, which wrap round alike.
    """
    x = (x + 1) * _signed(0x9E3779B97F4A7C15)
    x ^= _shift(x, 30)
    x *= _signed(0xBF58476D1CE4E5B9)
    x ^= _shift(x, 27)
    x *= _signed(0x94D049BB133111EB)
    x ^= _shift(x, 31)
    return x


def _signed(bits: int) -> int:
    """The int64 with the lowest 64 bits of a number."""
    return (bits + 2**63) % 2**64 - 2**63


def _shift(x: Tensor, by: int) -> Tensor:
    """``x >> by`` of an unsigned number."""
    return (x >> by).bitwise_and_((1 << 64 - by) - 1)


def _remainder(x: Tensor, by: int) -> Tensor:
    """``x % by`` of an unsigned number."""
    return (_shift(x, 1) % by * 2 + (x & 1)) % by
