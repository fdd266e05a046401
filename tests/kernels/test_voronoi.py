from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from skimage import measure
from torch import Tensor

from spit.kernels import reference
from spit.kernels import tensors as numba
from spit.kernels.reference.voronoi import settle

sides = st.sampled_from([1, 2, 3, 5, 8, 13, 21])


def random_sites(seed: int, batch: int, height: int, width: int, share: float) -> Tensor:
    """Distinct pixels in any order, ``share`` of all of them."""
    rng = np.random.default_rng(seed)
    cells = max(1, round(share * height * width))
    flat = np.stack([rng.permutation(height * width)[:cells] for _ in range(batch)])
    return torch.from_numpy(np.stack([flat // width, flat % width], axis=-1)).int()


def nearest(sites: Tensor, height: int, width: int) -> np.ndarray:
    """Every distance, the first of the smallest."""
    y, x = np.mgrid[:height, :width]
    points = sites.numpy().astype(np.int64)
    return ((y[..., None] - points[:, 0]) ** 2 + (x[..., None] - points[:, 1]) ** 2).argmin(-1)


def cut_off(cells: np.ndarray, sites: Tensor) -> np.ndarray:
    """Pixels that no path inside their cell joins to its site."""
    pieces = measure.label(cells, background=-1, connectivity=1)
    home = pieces[tuple(sites.T.numpy())]
    return pieces != home[cells]


@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 100_000), batch=st.integers(1, 3), height=sides, width=sides,
       share=st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0]))
def test_parity(seed: int, batch: int, height: int, width: int, share: float) -> None:
    sites = random_sites(seed, batch, height, width, share)
    expected = reference.nearest_sites(sites, height, width)
    got = numba.nearest_sites(sites, height, width)
    assert got.dtype == expected.dtype == torch.int32
    assert torch.equal(got, expected)


def test_parity_on_loose_pieces_of_several_pixels() -> None:
    """Sites crowded in a square of the image: cells narrow far from it and fall apart more often."""
    largest = 0
    for seed in range(10):
        sites = random_sites(seed, 4, 20, 20, 0.1) + torch.tensor([4 * seed, 2 * seed], dtype=torch.int32)
        got = reference.nearest_sites(sites, 60, 70)
        assert torch.equal(got, numba.nearest_sites(sites, 60, 70))
        for labels, own in zip(got, sites, strict=True):
            cells = nearest(own, 60, 70)
            loose = cut_off(cells, own)
            assert np.array_equal(labels.numpy() != cells, loose)
            pieces = measure.label(np.where(loose, cells, -1), background=-1, connectivity=1)
            largest = max(largest, np.bincount(pieces[loose]).max(initial=0))
    assert largest >= 3


@settings(deadline=None, max_examples=150)
@example(seed=588, height=3, width=3, share=0.3)  # two of nine pixels are cut off
@given(seed=st.integers(0, 100_000), height=sides, width=sides,
       share=st.sampled_from([0.0, 0.02, 0.1, 0.3, 0.5, 0.9, 1.0]))
def test_nearest_but_for_what_is_cut_off(
    pieces: Callable[[Tensor], int], seed: int, height: int, width: int, share: float
) -> None:
    sites = random_sites(seed, 1, height, width, share)[0]
    labels = numba.nearest_sites(sites[None], height, width)[0]
    cells = nearest(sites, height, width)
    loose = cut_off(cells, sites)
    assert np.array_equal(labels.numpy()[~loose], cells[~loose])
    assert loose.sum() <= max(2, 0.15 * loose.size)
    assert pieces(labels) == len(sites)
    assert torch.equal(labels[sites[:, 0], sites[:, 1]], torch.arange(len(sites), dtype=torch.int32))


def test_some_cells_do_fall_apart_on_the_grid() -> None:
    """Or the repair, and the test above of it, would have nothing to do."""
    loose = 0
    for seed in range(60):
        sites = random_sites(seed, 1, 21, 21, 0.1)[0]
        loose += int(cut_off(nearest(sites, 21, 21), sites).sum())
    assert 0 < loose < 0.01 * 60 * 21 * 21


def test_hand_case(backend: Any) -> None:
    """Sites at columns 0 and 4 of five: the middle is as far from both and goes to the smaller number."""
    assert backend.nearest_sites(torch.tensor([[[0, 0], [0, 4]]]).int(), 1, 5).tolist() == [[[0, 0, 0, 1, 1]]]
    assert backend.nearest_sites(torch.tensor([[[0, 4], [0, 0]]]).int(), 1, 5).tolist() == [[[1, 1, 0, 0, 0]]]


def test_a_pixel_cut_off_goes_to_a_cell_that_touches_it(backend: Any) -> None:
    """(3, 0) is nearest to (1, 2), 8 against 9 and 9, but (2, 0) and (3, 1) belong to the other two."""
    sites = torch.tensor([[[0, 0], [1, 2], [3, 3]]]).int()
    assert nearest(sites[0], 4, 4)[3, 0] == 1
    assert backend.nearest_sites(sites, 4, 4)[0].tolist() == [
        [0, 0, 1, 1],
        [0, 1, 1, 1],
        [0, 1, 1, 2],
        [0, 2, 2, 2],
    ]


def test_ties_go_to_the_smaller_number(backend: Any) -> None:
    """The middle row and column are as far from two corners."""
    corners = torch.tensor([[[8, 8], [0, 8], [8, 0], [0, 0]]]).int()
    labels = backend.nearest_sites(corners, 9, 9)[0]
    assert labels[4].tolist() == [2] * 4 + [0] * 5
    assert labels[:, 4].tolist() == [1] * 4 + [0] * 5


@pytest.mark.parametrize(("size", "cells"), [
    ((1, 1), 1), ((1, 17), 5), ((17, 1), 17), ((2, 40), 11), ((9, 13), 1), ((13, 9), 15), ((17, 19), 14), ((20, 31), 7),
    ((5, 6), 30),
])
def test_parity_in_triton(gpu: Any, size: tuple[int, int], cells: int) -> None:
    sites = random_sites(cells, 2, *size, cells / (size[0] * size[1]))
    before = sites.clone()
    got = gpu.nearest_sites(sites, *size)
    assert got.dtype == torch.int32
    assert torch.equal(got, reference.nearest_sites(sites, *size))
    assert torch.equal(sites, before)


def test_sites_crowded_far_from_most_pixels(compiled: Any) -> None:
    """All in one corner: the search goes through rings of empty buckets."""
    sites = torch.tensor([[[0, 0], [0, 1], [1, 0], [2, 2]], [[29, 40], [28, 40], [29, 38], [27, 39]]]).int()
    assert torch.equal(compiled.nearest_sites(sites, 30, 41), reference.nearest_sites(sites, 30, 41))


def test_loose_pieces_settle_from_the_rim_inwards() -> None:
    """A loose 3 × 3 between two cells: its middle waits for the others, and takes the nearer site of theirs."""
    sites = torch.tensor([[[6, 0], [6, 6], [0, 6]]])
    labels = torch.tensor([[
        [0, 0, 0, 0, 1, 1, 2],
        [0, 0, 0, 0, 1, 1, 1],
        [0, 0, 2, 2, 2, 1, 1],
        [0, 0, 2, 2, 2, 1, 1],
        [0, 0, 2, 2, 2, 1, 1],
        [0, 0, 0, 0, 1, 1, 1],
        [0, 0, 0, 0, 1, 1, 1],
    ]])
    before = labels.clone()
    expected = torch.tensor([[0, 0, 0, 0, 1, 1, 1]]).expand(7, -1).clone()
    expected[0, 6] = 2
    assert torch.equal(settle(sites, labels)[0], expected)
    assert torch.equal(labels, before)


@pytest.mark.parametrize("size", [(1, 4000), (4000, 1), (2, 1500), (3, 800)])
@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_many_cells_on_thin_images(pieces: Callable[[Tensor], int], size: tuple[int, int], share: float) -> None:
    sites = random_sites(0, 1, *size, share)
    labels = numba.nearest_sites(sites, *size)[0]
    assert labels.unique().numel() == pieces(labels) == sites.shape[1]
