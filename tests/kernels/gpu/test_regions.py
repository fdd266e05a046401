from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spit.kernels import reference
from spit.tokens import offsets_of

CASES = [(1, 1, 1, 1), (2, 1, 9, 4), (2, 9, 1, 4), (3, 12, 7, 20), (1, 25, 24, 3), (4, 5, 6, 1)]  # B, H, W, most


def random_labels(batch: int, height: int, width: int, most: int) -> tuple[Tensor, Tensor]:
    """Scattered regions; some numbers may have no pixel."""
    rng = np.random.default_rng(batch + most)
    counts = rng.integers(1, most + 1, batch)
    labels = np.stack([rng.integers(0, count, (height, width)) for count in counts])
    return torch.from_numpy(labels).int(), offsets_of(torch.from_numpy(counts))


@pytest.mark.parametrize("blocks", ["", "small_blocks"])
@pytest.mark.parametrize("name", ["region_sizes", "region_boxes"])
@pytest.mark.parametrize("case", CASES)
def test_sizes_and_boxes(
    gpu: Any, request: pytest.FixtureRequest, name: str, case: tuple[int, ...], blocks: str
) -> None:
    if blocks:
        request.getfixturevalue(blocks)
    labels, offsets = random_labels(*case)
    for layout in (labels, labels.mT):
        got, expected = getattr(gpu, name)(layout, offsets), getattr(reference, name)(layout, offsets)
        assert got.dtype == expected.dtype
        assert torch.equal(got, expected)


def test_numbers_without_a_pixel(gpu: Any) -> None:
    labels, offsets = torch.tensor([[[0, 0, 3], [3, 3, 3]]], dtype=torch.int32), torch.tensor([0, 6])
    assert gpu.region_sizes(labels, offsets).tolist() == [2, 0, 0, 4, 0, 0]
    assert gpu.region_boxes(labels, offsets).tolist() == [
        [0, 0, 1, 2], [0] * 4, [0] * 4, [0, 0, 2, 3], [0] * 4, [0] * 4]


@pytest.mark.parametrize("blocks", ["", "small_blocks"])
@pytest.mark.parametrize("counts", [
    [[1, 1]],  # one image, one level
    [[5], [3], [1]],
    [[40, 3, 700], [9, 3, 41], [9, 1, 2], [1, 1, 2]],  # images of very different sizes
])
def test_compose(
    gpu: Any, request: pytest.FixtureRequest, counts: list[list[int]], blocks: str
) -> None:
    if blocks:
        request.getfixturevalue(blocks)
    rng = np.random.default_rng(0)
    levels = [*counts, counts[-1]]
    offsets = [offsets_of(torch.tensor(level)) for level in levels]
    parents = []
    for below, above in pairwise(levels):
        images = [rng.integers(0, upper, lower) for lower, upper in zip(below, above, strict=True)]
        parents.append(torch.from_numpy(np.concatenate(images)).int())
    before = [level.clone() for level in parents]
    got = gpu.compose(parents, offsets)
    assert got.dtype == torch.int32
    assert torch.equal(got, reference.compose(parents, offsets))
    assert all(map(torch.equal, parents, before))


def test_a_partition_of_the_gpu_is_measured_there(on_gpu: Callable[..., Any]) -> None:
    """Partition.sizes and boxes go through the same dispatch."""
    from spit.partition import Partition

    labels = torch.tensor([[[0, 1], [0, 1]]], dtype=torch.int32)
    partition = on_gpu(Partition.of, labels, torch.tensor([2]))
    assert on_gpu(partition.sizes).tolist() == [2, 2]
    assert on_gpu(partition.boxes).tolist() == [[0, 0, 2, 1], [0, 1, 2, 2]]
