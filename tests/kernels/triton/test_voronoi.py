from collections.abc import Callable
from importlib import import_module

import pytest
import torch


@pytest.mark.parametrize(("size", "cells"), [(4096, 1), (1100, 1), (4096, 8), (256, 256), (8, 64)])
def test_blocks_stay_small(monkeypatch: pytest.MonkeyPatch, size: int, cells: int) -> None:
    """A block of Triton's holds 2²⁰ numbers at most, and one of thousands no longer fits into registers."""
    voronoi = import_module("spit.kernels.triton.voronoi")
    launched: list[tuple[int, int, int]] = []

    class Launch:
        def __getitem__(self, grid: tuple[int, int]) -> Callable[..., None]:
            return lambda *_, SIDE, BLOCK: launched.append((grid[0], SIDE, BLOCK))

    monkeypatch.setattr(voronoi, "_nearest", Launch())
    monkeypatch.setattr(voronoi, "settle", lambda sites, labels: labels)
    voronoi.nearest_sites(torch.zeros(1, cells, 2, dtype=torch.int32), size, size)
    (programs, side, block), = launched
    assert block <= 4096
    assert side * side <= block
    assert programs * side * side >= size * size
