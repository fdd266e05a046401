"""App. B, final thresholding: adjacent superpixels closer than a threshold are merged, all of them."""

import itertools
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import Tensor

from spit.kernels import SCALE, Rules, reference
from spit.kernels import tensors as numba
from spit.tokenizers import SuperpixelTokenizer

BACKENDS = pytest.mark.parametrize("backend", [reference, numba], ids=["reference", "numba"])
ROW = torch.tensor([[[[0, 0, 100, 100, 300, 300, 310, 310, 1000, 1000]]]], dtype=torch.int16)


@BACKENDS
@pytest.mark.parametrize(("units", "expected"), [
    (9, [0, 1, 2, 3, 4]),
    (10, [0, 1, 2, 3, 4]),  # closer than, not as close as
    (11, [0, 1, 2, 2, 3]),
    (100, [0, 1, 2, 2, 3]),
    (101, [0, 0, 1, 1, 2]),
    (201, [0, 0, 0, 0, 1]),  # ends 310 apart, through the middle
    (690, [0, 0, 0, 0, 1]),
    (691, [0, 0, 0, 0, 0]),
])
def test_hand_case(backend: ModuleType, units: int, expected: list[int]) -> None:
    rules = Rules(levels=1, similarity="euclidean", merge_threshold=units / SCALE)
    (_, counts), (parents, merged) = backend.superpixels(ROW, rules)
    assert counts.tolist() == [5]
    assert parents.tolist() == expected
    assert merged.tolist() == [max(expected) + 1]


@BACKENDS
def test_the_distance_is_euclidean_over_channels(backend: ModuleType) -> None:
    """3, 4, 12 → 13: not the largest difference, 12, nor their sum, 19."""
    image = torch.tensor([[0, 0, 30, 30], [0, 0, 40, 40], [0, 0, 120, 120]], dtype=torch.int16).reshape(1, 3, 1, 4)
    for units, regions in ((129, 2), (131, 1)):
        rules = Rules(levels=1, similarity="euclidean", merge_threshold=units / SCALE)
        assert backend.superpixels(image, rules)[-1][1].tolist() == [regions]


def test_a_threshold_of_zero_changes_nothing(photo: Callable[[str, int], Tensor]) -> None:
    image = photo("coffee", 96)
    plain, zero = SuperpixelTokenizer().hierarchy(image), SuperpixelTokenizer(merge_threshold=0.0).hierarchy(image)
    assert len(plain) == len(zero) == 5
    assert torch.equal(plain[-1].labels, zero[-1].labels)


def test_higher_thresholds_are_coarser(photo: Callable[[str, int], Tensor]) -> None:
    """The paper's table: 556.5, 513.2, 441.6, 365.0, 293.7 tokens for 0, .05, .10, .15, .20."""
    image = photo("chelsea", 128)
    parts = [SuperpixelTokenizer(levels=3, merge_threshold=threshold)(image).labels.flatten()
             for threshold in (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.4, 10.0)]
    counts = [len(labels.unique()) for labels in parts]
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) > 5
    assert counts[-1] == 1  # no two colours are 10 apart
    for fine, coarse in itertools.pairwise(parts):
        assert len(torch.stack([fine, coarse]).unique(dim=1)[0]) == len(fine.unique())


@BACKENDS
@pytest.mark.parametrize("threshold", [1e-30, 1e10, 1e20, 1e160, 1e300])
def test_extreme_thresholds(backend: ModuleType, threshold: float) -> None:
    """No overflow on the way: a huge threshold joins all."""
    rules = Rules(levels=1, similarity="euclidean", merge_threshold=threshold)
    expected = [5] if threshold < 1 else [1]
    assert backend.superpixels(ROW, rules)[-1][1].tolist() == expected
