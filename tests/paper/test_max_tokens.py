"""The bound on the count is exact, and coarsens the partition without it."""

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor

from spit.kernels import SCALE, Rules, reference
from spit.kernels import tensors as numba
from spit.tokenizers import SuperpixelTokenizer

BACKENDS = pytest.mark.parametrize("backend", [reference, numba], ids=["reference", "numba"])
Texture = Callable[[int, tuple[int, ...], int, int], Tensor]
Pieces = Callable[[Tensor], int]
ROW = torch.tensor([[[[0, 0, 100, 100, 300, 300, 310, 310, 1000, 1000]]]], dtype=torch.int16)


@BACKENDS
@pytest.mark.parametrize(("bound", "expected"), [
    (6, [0, 1, 2, 3, 4]),
    (5, [0, 1, 2, 3, 4]),
    (4, [0, 1, 2, 2, 3]),  # 10 apart
    (3, [0, 0, 1, 1, 2]),  # 100
    (2, [0, 0, 0, 0, 1]),  # 255 between the means of 50 and 305
    (1, [0, 0, 0, 0, 0]),
])
def test_the_most_alike_are_joined_first(backend: ModuleType, bound: int, expected: list[int]) -> None:
    levels = backend.superpixels(ROW, Rules(levels=1, similarity="euclidean", max_tokens=bound))
    assert levels[0][1].tolist() == [5]
    assert levels[1][0].tolist() == expected


def test_every_bound_of_a_photograph(photo: Callable[[str, int], Tensor], pieces: Pieces) -> None:
    image = photo("astronaut", 64)
    free = SuperpixelTokenizer(levels=3)(image)
    count = int(free.counts[0])
    for bound in range(1, count + 3):
        part = SuperpixelTokenizer(levels=3, max_tokens=bound)(image)
        assert int(part.counts[0]) == min(count, bound) == len(part.labels.unique()) == pieces(part.labels[0])
        if bound >= count:
            assert torch.equal(part.labels, free.labels)


def test_each_image_has_its_own_bound(photo: Callable[[str, int], Tensor]) -> None:
    images = torch.stack([photo("astronaut", 48), torch.zeros(3, 48, 48, dtype=torch.uint8), photo("coffee", 48)])
    assert SuperpixelTokenizer(levels=2, max_tokens=30)(images).counts.tolist() == [30, 1, 30]


@BACKENDS
def test_flat_noise_and_long_rows_end(backend: ModuleType) -> None:
    """The loop that joins stops for ties everywhere and for a path, the slowest graph to contract."""
    noise = torch.randint(0, 2, (1, 1, 1, 300), generator=torch.Generator().manual_seed(0)).to(torch.int16) * SCALE
    for features in (noise, torch.arange(300, dtype=torch.int16).reshape(1, 1, 1, 300)):
        levels = backend.superpixels(features, Rules(levels=1, similarity="euclidean", max_tokens=1))
        assert levels[-1][1].tolist() == [1]
