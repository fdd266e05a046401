"""Boundary refinement: hand-worked moves, what it keeps, and that the backends equal the definition."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spit.kernels import Rules, reference
from spit.kernels import tensors as numba
from spit.kernels.dispatch import load
from spit.tokenizers.preprocess import superpixel_features
from spit.tokens import offsets_of

Texture = Callable[[int, tuple[int, ...], int, int], Tensor]


def refined(backend: Any, labels: list[list[int]], pixels: list[list[int]], sweeps: int = 1,
            least: int = 1, masked: bool = False) -> list[list[int]]:
    maps = torch.tensor([labels], dtype=torch.int32)
    offsets = torch.tensor([0, int(maps.max()) + 1])
    answer: Tensor = backend.refine(maps, offsets, torch.tensor([[pixels]], dtype=torch.uint8), sweeps, least, masked)
    return answer[0].tolist()


def test_a_pixel_goes_where_its_color_is(backend: Any) -> None:
    assert refined(backend, [[0, 0, 0, 1, 1]], [[9, 9, 50, 50, 50]]) == [[0, 0, 1, 1, 1]]


def test_the_gain_counts_what_the_move_does_to_both_means(backend: Any) -> None:
    """x = 10 among {0, 10}: staying costs 2/1 · 5² = 50, going to {15, 15, 16, 16} 4/5 · 5.5² = 24.2."""
    assert refined(backend, [[0, 0, 1, 1, 1, 1]], [[0, 10, 15, 15, 16, 16]]) == [[0, 1, 1, 1, 1, 1]]
    # From {0, 0, 0, 4}: staying costs 4/3 · 3² = 12, going to {8, 8} 2/3 · 4² = 10.67; to {9, 9} it would be 16.67.
    assert refined(backend, [[0, 0, 0, 0, 1, 1]], [[0, 0, 0, 4, 8, 8]]) == [[0, 0, 0, 1, 1, 1]]
    assert refined(backend, [[0, 0, 0, 0, 1, 1]], [[0, 0, 0, 4, 9, 9]]) == [[0, 0, 0, 0, 1, 1]]


def test_a_pixel_that_holds_its_region_together_stays(backend: Any) -> None:
    bridge = [[0, 1, 0], [0, 0, 0], [2, 2, 2]]
    pixels = [[9, 90, 9], [9, 90, 9], [90, 90, 90]]
    assert refined(backend, bridge, pixels)[1][1] == 0
    around = [[0, 1, 0], [0, 0, 0], [0, 0, 0]]  # the same pixel where there is a way round
    assert refined(backend, around, [[9, 90, 9], [9, 90, 9], [9, 9, 9]])[1][1] == 1
    far = [[0, 1, 0, 0], [0, 0, 0, 0], [2, 2, 2, 0], [0, 0, 0, 0]]  # the way round is not within its ring
    assert refined(backend, far, [[9, 90, 9, 9], [9, 90, 9, 9], [90, 90, 90, 9], [9, 9, 9, 9]])[1][1] == 0


def test_the_last_pixel_of_a_region_stays(backend: Any) -> None:
    assert refined(backend, [[0, 1, 0]], [[7, 7, 7]], 5) == [[0, 1, 0]]
    assert refined(backend, [[0]], [[7]], 5) == [[0]]


def test_equal_neighbors_go_by_north_west_east_south(backend: Any) -> None:
    labels = [[1, 1, 1], [2, 0, 3], [2, 0, 3], [2, 0, 3]]
    pixels = [[50, 50, 50], [50, 50, 50], [50, 9, 50], [50, 9, 50]]
    assert refined(backend, labels, pixels)[1][1] == 1  # three pixels of 50 each, and the north comes first
    labels = [[2, 2, 2], [1, 0, 3], [1, 0, 3], [1, 0, 3]]
    assert refined(backend, labels, pixels)[1][1] == 2


@pytest.mark.parametrize("name", ["reference", "numba"])
def test_a_region_gives_away_no_more_than_it_has_above_the_least_size(name: str) -> None:
    labels, pixels = [[0, 0, 0], [0, 0, 0], [1, 1, 1]], [[9] * 3, [9, 50, 50], [50] * 3]
    for least, row in ((1, [0, 1, 1]), (4, [0, 1, 1]), (5, [0, 0, 1]), (6, [0, 0, 0])):
        assert refined(load(name), labels, pixels, 2, least)[1] == row, least
    both = [[0, 0, 0], [1, 1, 1]]  # two of one visit: the first in raster order goes
    assert refined(load(name), both, [[50, 9, 50], [50] * 3], 1, 2) == [[1, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("name", ["reference", "numba"])
def test_what_is_nobody_s_neither_moves_nor_grows(name: str) -> None:
    labels = [[0, 0, -1, 1], [0, 0, -1, 1]]
    assert refined(load(name), labels, [[9, 50, 50, 50], [9, 9, 9, 50]], 3, masked=True) == labels


def test_a_least_size_and_a_mask_are_refused_on_a_gpu(gpu: Any) -> None:
    for least, masked in ((2, False), (1, True)):
        with pytest.raises(ValueError, match=f"got least={least} and masked={masked}"):
            refined(gpu, [[0, 0, 1]], [[9, 9, 9]], 1, least, masked)


def test_no_sweep_and_no_gain_change_nothing(backend: Any) -> None:
    labels = [[0, 0, 1, 1], [0, 0, 1, 1]]
    assert refined(backend, labels, [[9, 50, 9, 50], [50, 9, 50, 9]], 0) == labels
    assert refined(backend, labels, [[5] * 4] * 2, 3) == labels


def squared_error(labels: Tensor, pixels: Tensor) -> float:
    values = pixels.double().flatten(1)
    one_hot = torch.nn.functional.one_hot(labels.flatten().long()).double()
    means = values @ one_hot / one_hot.sum(0)
    return float(((values - means[:, labels.flatten().long()]) ** 2).sum())


def test_the_error_falls_on_photographs(photo: Callable[[str, int], Tensor]) -> None:
    pixels = torch.stack([photo("astronaut", 128), photo("coffee", 128)])
    labels, counts = numba.superpixel_labels(superpixel_features(pixels, "paper"), Rules())
    for image, (one, count) in enumerate(zip(labels, counts, strict=True)):
        errors = [squared_error(numba.refine(one[None], offsets_of(count[None]), pixels[image][None], k)[0],
                                pixels[image]) for k in range(4)]
        assert errors == sorted(errors, reverse=True)
        assert errors[3] < 0.85 * errors[0]


def test_an_image_alone_and_in_a_batch(photo: Callable[[str, int], Tensor]) -> None:
    pixels = torch.stack([photo("astronaut", 64), photo("coffee", 64), photo("chelsea", 64)])
    labels, counts = numba.superpixel_labels(superpixel_features(pixels, "paper"), Rules())
    whole = numba.refine(labels, offsets_of(counts), pixels, 2)
    for b in range(3):
        alone = numba.refine(labels[b : b + 1], offsets_of(counts[b : b + 1]), pixels[b : b + 1], 2)
        assert torch.equal(alone[0], whole[b])


@pytest.mark.usefixtures("few_programs", "small_blocks")
@pytest.mark.parametrize("shape", [(3, 3, 11, 13), (1, 1, 1, 1), (2, 4, 1, 9), (2, 1, 9, 1), (2, 3, 16, 16)])
def test_textures_in_triton(gpu: Any, mixed: Callable[..., Tensor], shape: tuple[int, ...]) -> None:
    pixels = mixed(shape, 0, 255, first=8).to(torch.uint8)
    labels, counts = numba.superpixel_labels(superpixel_features(pixels, "paper"), Rules(levels=2))
    before = labels.clone()
    got = gpu.refine(labels, offsets_of(counts), pixels, 2)
    assert torch.equal(got, reference.refine(labels, offsets_of(counts), pixels, 2))
    assert torch.equal(labels, before)


@pytest.mark.usefixtures("few_programs")
def test_a_photograph_in_triton(gpu: Any, photo: Callable[[str, int], Tensor]) -> None:
    pixels = photo("chelsea", 48)[None]
    labels, counts = numba.superpixel_labels(superpixel_features(pixels, "paper"), Rules(levels=3))
    expected = reference.refine(labels, offsets_of(counts), pixels, 2)
    assert not torch.equal(expected, labels)
    assert torch.equal(gpu.refine(labels, offsets_of(counts), pixels, 2), expected)
