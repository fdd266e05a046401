from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spit.kernels import reference


def random_sites(batch: int, height: int, width: int, cells: int) -> Tensor:
    """Distinct pixels in any order."""
    rng = np.random.default_rng(cells)
    flat = np.stack([rng.permutation(height * width)[:cells] for _ in range(batch)])
    return torch.from_numpy(np.stack([flat // width, flat % width], axis=-1)).int()


@pytest.mark.parametrize(("size", "cells"), [
    ((1, 1), 1),
    ((1, 17), 5),
    ((17, 1), 17),
    ((2, 40), 11),
    ((9, 13), 1),
    ((13, 9), 15),
    ((17, 19), 14),
    ((20, 31), 7),
    ((5, 6), 30),
])
def test_parity(gpu: Any, size: tuple[int, int], cells: int) -> None:
    sites = random_sites(2, *size, cells)
    got = gpu.nearest_sites(sites, *size)
    assert got.dtype == torch.int32
    assert torch.equal(got, reference.nearest_sites(sites, *size))


def test_sites_crowded_far_from_most_pixels(gpu: Any) -> None:
    """All in one corner: the search goes through rings of empty buckets."""
    sites = torch.tensor([[[0, 0], [0, 1], [1, 0], [2, 2]], [[29, 40], [28, 40], [29, 38], [27, 39]]]).int()
    assert torch.equal(gpu.nearest_sites(sites, 30, 41), reference.nearest_sites(sites, 30, 41))


def test_ties_go_to_the_smaller_number(gpu: Any) -> None:
    sites = torch.tensor([[[0, 0], [0, 4]], [[0, 4], [0, 0]]]).int()
    assert gpu.nearest_sites(sites, 1, 5).tolist() == [[[0, 0, 0, 1, 1]], [[1, 1, 0, 0, 0]]]
    corners = torch.tensor([[[8, 8], [0, 8], [8, 0], [0, 0]]]).int()  # the middle row and column are tied
    assert torch.equal(gpu.nearest_sites(corners, 9, 9), reference.nearest_sites(corners, 9, 9))


def test_a_pixel_cut_off_goes_to_a_cell_that_touches_it(gpu: Any) -> None:
    """(3, 0) is nearest to (1, 2), 8 against 9 and 9, but (2, 0) and (3, 1) belong to the other two."""
    sites = torch.tensor([[[0, 0], [1, 2], [3, 3]], [[0, 0], [0, 1], [3, 3]]]).int()
    assert gpu.nearest_sites(sites, 4, 4)[0].tolist() == [[0, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 2], [0, 2, 2, 2]]
    assert torch.equal(gpu.nearest_sites(sites, 4, 4), reference.nearest_sites(sites, 4, 4))


@pytest.mark.parametrize(("size", "cells"), [(4096, 1), (1100, 1), (4096, 8), (256, 256), (8, 64)])
def test_blocks_stay_small(monkeypatch: pytest.MonkeyPatch, size: int, cells: int) -> None:
    """A block of Triton's holds 2²⁰ numbers at most, and one of thousands no longer fits into registers."""
    voronoi = import_module("spit.kernels.gpu.voronoi")
    launched: list[tuple[int, int, int]] = []

    class Launch:
        def __getitem__(self, grid: tuple[int, int]) -> Callable[..., None]:
            return lambda *_, SIDE, BLOCK: launched.append((grid[0], SIDE, BLOCK))

    monkeypatch.setattr(voronoi, "_nearest", Launch())
    monkeypatch.setattr(voronoi, "settle", lambda sites, labels: labels)
    voronoi.nearest_sites(random_sites(1, 8, 8, 1).expand(-1, cells, -1), size, size)
    (programs, side, block), = launched
    assert block <= 4096
    assert side * side <= block
    assert programs * side * side >= size * size


def test_input_stays_as_it_is(gpu: Any) -> None:
    sites = random_sites(1, 6, 7, 5)
    before = sites.clone()
    gpu.nearest_sites(sites, 6, 7)
    gpu.nearest_sites(sites.flip(2).flip(2).expand(3, -1, -1), 6, 7)
    assert torch.equal(sites, before)
