"""§2.2 by hand. ``test_superpixels`` compares all of it with an independent program."""

from math import inf
from types import ModuleType

import pytest
import torch
from torch import Tensor

from spit.kernels import SCALE, Rules, reference
from spit.kernels import tensors as numba
from spit.partition import Hierarchy

BACKENDS = pytest.mark.parametrize("backend", [reference, numba], ids=["reference", "numba"])


def label_maps(backend: ModuleType, features: Tensor, rules: Rules) -> list[list[list[int]]]:
    """π^(1) … π^(T) of one (C, H, W) image."""
    batch = features[None].to(torch.int16)
    levels = backend.superpixels(batch, rules)
    return [part.labels[0].tolist() for part in list(Hierarchy._of(batch, levels))[1:]]


def blocks(*runs: tuple[int, int], rows: int = 1) -> Tensor:
    """(1, rows, W): flat rectangles side by side, each ``(value, width)``. Level 0 finds exactly these."""
    line = [value for value, width in runs for _ in range(width)]
    return torch.tensor(line).expand(1, rows, -1)


# --- by hand --------------------------------------------------------------------------------------


@BACKENDS
def test_level_0_each_pixel_joins_its_most_similar_neighbor(backend: ModuleType) -> None:
    """Distances →: 100, 400; 600, 300. Distances ↓: 900, 200, 100.

    (0,0) and (0,1) choose each other, so do (0,2) and (1,2); (1,0) has 900 above and 600 beside it and
    follows (1,1), which follows (0,1).
    """
    image = torch.tensor([[[0, 100, 500], [900, 300, 600]]])
    (level,) = label_maps(backend, image, Rules(levels=1, similarity="euclidean"))
    assert level == [[0, 0, 1], [0, 0, 1]]


@BACKENDS
def test_the_cosine_looks_at_the_direction_only(backend: ModuleType) -> None:
    """The middle pixel is as long as those to its left and points where the long ones to its right do."""
    image = torch.tensor([[[100, 100, 0, 0, 1]], [[0, 1, 100, 2000, 2000]]])
    assert label_maps(backend, image, Rules(levels=1)) == [[[0, 0, 1, 1, 1]]]
    assert label_maps(backend, image, Rules(levels=1, similarity="euclidean")) == [[[0, 0, 0, 1, 1]]]


@BACKENDS
def test_ties_go_to_the_neighbor_with_the_smallest_number(backend: ModuleType) -> None:
    """The middle of a plus sign is as far from all four; up has the smallest number.

    Left, right and down have other neighbours that suit them better.
    """
    image = torch.tensor([[[900, 100, 901], [100, 0, -100], [100, -100, -100]]])
    (level,) = label_maps(backend, image, Rules(levels=1, similarity="euclidean"))
    assert level[1][1] == level[0][1]
    assert level[1][1] != level[1][0]
    assert level[1][1] != level[1][2]


# Level 0 makes three regions of one row: A of 2 pixels with mean −2000, B of 5 with mean −976 and C
# of 2 with mean 867: similarities −1024/2048 = −0.5 and −1843/2048 = −0.9. Sizes 2, 5, 2 have mean 3
# and deviation √2, so that the self-loops weigh −0.707, 1.414, −0.707.
ABC = torch.tensor([[[-2001, -1999, -982, -978, -975, -973, -972, 866, 868]]])


@BACKENDS
@pytest.mark.parametrize(("clip", "expected"), [
    (None, "AAA"),  # no self-loops: all have someone to join
    (inf, "AAC"),  # A: −0.5 > −0.707 joins B; C: −0.9 < −0.707 stays; B stays, A comes
    (0.75, "AAC"),
    (0.4, "ABC"),  # −0.4 beats both
    (0.51, "AAC"),
    (0.49, "ABC"),
])
def test_self_loops_compare_size_with_mean_and_deviation(
    backend: ModuleType, clip: float | None, expected: str
) -> None:
    rules = Rules(levels=2, similarity="euclidean", loop_clip=clip)
    first, second = label_maps(backend, ABC, rules)
    assert first == [[0, 0, 1, 1, 1, 1, 1, 2, 2]]
    names = sorted(set(expected))
    a, b, c = (names.index(name) for name in expected)
    assert second == [[a, a, b, b, b, b, b, c, c]]


@BACKENDS
def test_the_deviation_is_that_of_all_regions(backend: ModuleType) -> None:
    """σ² is divided by n, not n − 1: for sizes 2, 5, 2 the loop of C is −1/√2 = −0.707, not −1/√3 = −0.577."""
    nearer = ABC.clone()
    nearer[0, 0, 7:] = torch.tensor([-976 + 1330 - 1, -976 + 1330 + 1])  # −0.649, between the two
    rules = Rules(levels=2, similarity="euclidean", loop_clip=inf)
    assert label_maps(backend, nearer, rules)[1] == [[0] * 9]


@BACKENDS
def test_regions_of_one_size_have_loops_of_weight_zero(backend: ModuleType) -> None:
    """0/0 is taken as 0: a negative similarity is worse than that, a positive cosine is better."""
    pair = blocks((0, 2), (500, 2))
    assert label_maps(backend, pair, Rules(levels=2, similarity="euclidean"))[1] == [[0, 0, 1, 1]]
    acute = torch.tensor([[[100, 100, 50, 50]], [[0, 0, 100, 100]]])
    assert label_maps(backend, acute, Rules(levels=2))[1] == [[0, 0, 0, 0]]
    obtuse = torch.tensor([[[100, 100, -50, -50]], [[0, 0, 100, 100]]])
    assert label_maps(backend, obtuse, Rules(levels=2))[1] == [[0, 0, 1, 1]]


@BACKENDS
def test_means_are_means_of_pixels_not_of_regions(backend: ModuleType) -> None:
    """π^(2) holds A of 2 pixels at −2000 and B of 5 at −976: its mean is −1268.6, not −1488.

    Beside it lies C. With a threshold between the two distances to C they join or not.
    """
    gap = (867 + (2 * 2000 + 5 * 976) / 7) / SCALE
    for threshold, expected in ((gap - 0.001, 2), (gap + 0.001, 1)):
        rules = Rules(levels=2, similarity="euclidean", merge_threshold=threshold)
        last = label_maps(backend, ABC, rules)[-1]
        assert len(set(last[0])) == expected


@BACKENDS
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_density_and_its_mixture_with_similarity(backend: ModuleType, rows: int) -> None:
    """Five flat rectangles V W X Y Z. X is more like W, wide, but denser together with Y, narrow.

    For r rows: δ(X, W) = 4 · 7r / (2 (r + 7))² and δ(X, Y) = 4 · 3r / (2 (r + 3))². X turns to Y where
    λ (δ(X, Y) − δ(X, W)) > (1 − λ) (s(X, W) − s(X, Y)) = (1 − λ) 30/2048. V and Z keep W and Y.
    """
    image = blocks((-41, 2), (-40, 6), (60, 1), (190, 2), (191, 2), rows=rows)
    if rows == 1:  # a single pixel would not be a region of its own
        image = blocks((-41, 4), (-40, 12), (60, 2), (190, 4), (191, 4))
    unit = 2 if rows == 1 else 1
    with_w = 4 * 7 * unit * rows / (2 * (rows + 7 * unit)) ** 2
    with_y = 4 * 3 * unit * rows / (2 * (rows + 3 * unit)) ** 2
    odds = (30 / SCALE) / (with_y - with_w)
    turn = odds / (1 + odds)
    assert 0.02 < turn < 0.9
    for share, expected in ((0.98 * turn, [0, 0, 0, 1, 1]), (1.02 * turn, [0, 0, 1, 1, 1])):
        rules = Rules(levels=2, similarity="euclidean", loop_clip=None, compactness=share)
        first, second = label_maps(backend, image, rules)
        joined = dict(zip(first[0], second[0], strict=True))
        assert [joined[v] for v in range(5)] == expected, share


@BACKENDS
def test_density_of_a_self_loop_counts_its_region_once(backend: ModuleType) -> None:
    """Two squares of 2 × 2: alone δ = 16/64, together 32/144. At λ = 1 each stays; twice 16 would too, but
    for 1 × 2 dominoes laid to a square, alone 8/36, together 16/64: once joins them, twice (16/36) would not."""
    squares = blocks((0, 2), (500, 2), rows=2)
    assert label_maps(backend, squares, Rules(levels=2, similarity="euclidean", compactness=1.0))[1][0] == [0, 0, 1, 1]
    dominoes = torch.tensor([[[0, 0], [500, 500]]])
    assert label_maps(backend, dominoes, Rules(levels=2, similarity="euclidean", compactness=1.0))[1] == [[0, 0]] * 2
