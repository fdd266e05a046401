from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spit.kernels import compose, reference, region_sizes
from spit.kernels import tensors as numba
from spit.partition import Partition
from spit.tokens import offsets_of

BACKENDS = pytest.mark.parametrize("backend", [reference, numba], ids=["reference", "numba"])


def random_labels(seed: int, batch: int, height: int, width: int, most: int) -> tuple[Tensor, Tensor]:
    """Scattered regions; some numbers may have no pixel."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, most + 1, batch)
    labels = np.stack([rng.integers(0, count, (height, width)) for count in counts])
    return torch.from_numpy(labels).int(), offsets_of(torch.from_numpy(counts))


maps = st.builds(random_labels, seed=st.integers(0, 10_000), batch=st.integers(1, 4),
                 height=st.integers(1, 12), width=st.integers(1, 12), most=st.sampled_from([1, 3, 20]))


@settings(deadline=None, max_examples=60)
@given(drawn=maps)
def test_parity(drawn: tuple[Tensor, Tensor]) -> None:
    expected, got = (backend.region_boxes(*drawn) for backend in (reference, numba))
    assert got.dtype == expected.dtype == torch.int32
    assert torch.equal(got, expected)


@BACKENDS
@settings(deadline=None, max_examples=40)
@given(drawn=maps)
def test_equals_numpy_region_by_region(backend: object, drawn: tuple[Tensor, Tensor]) -> None:
    labels, offsets = drawn
    sizes, boxes = region_sizes(labels, offsets), backend.region_boxes(labels, offsets)
    for b in range(len(labels)):
        for v in range(int(offsets[b + 1] - offsets[b])):
            ys, xs = np.nonzero(labels[b].numpy() == v)
            row = int(offsets[b]) + v
            assert sizes[row] == len(ys)
            expected = [ys.min(), xs.min(), ys.max() + 1, xs.max() + 1] if len(ys) else [0, 0, 0, 0]
            assert boxes[row].tolist() == expected


def test_hand_case(backend: Any) -> None:
    labels = torch.tensor([[[0, 0, 1], [2, 2, 1]], [[0, 0, 0], [0, 1, 0]]], dtype=torch.int32)
    offsets = torch.tensor([0, 3, 5])
    assert region_sizes(labels, offsets).tolist() == [2, 2, 2, 5, 1]
    assert backend.region_boxes(labels, offsets).tolist() == [
        [0, 0, 1, 2], [0, 2, 2, 3], [1, 0, 2, 2], [0, 0, 2, 3], [1, 1, 2, 2]]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), batch=st.integers(1, 4), steps=st.integers(1, 4), most=st.sampled_from([1, 4, 30]))
def test_compose_follows_each_region_upwards(seed: int, batch: int, steps: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    counts = np.sort(rng.integers(1, most + 1, (steps + 1, batch)), axis=0)[::-1].copy()
    offsets = [offsets_of(torch.from_numpy(level)) for level in counts]
    maps = [[rng.integers(0, counts[t + 1, b], counts[t, b]) for b in range(batch)] for t in range(steps)]
    parents = [torch.from_numpy(np.concatenate(level)).int() for level in maps]
    expected = []
    for b in range(batch):
        for v in range(counts[0, b]):
            for t in range(steps):
                v = maps[t][b][v]
            expected.append(int(v))
    before = [level.clone() for level in parents]
    got = compose(parents, offsets)
    assert got.dtype == torch.int32
    assert got.tolist() == expected
    assert all(map(torch.equal, parents, before))


def test_any_layout(backend: Any) -> None:
    labels, offsets = random_labels(3, 2, 8, 6, 5)
    for operation in (region_sizes, backend.region_boxes):
        assert torch.equal(operation(labels.mT, offsets), operation(labels.mT.contiguous(), offsets))


def test_numbers_without_a_pixel(backend: Any) -> None:
    labels, offsets = torch.tensor([[[0, 0, 3], [3, 3, 3]]], dtype=torch.int32), torch.tensor([0, 6])
    assert region_sizes(labels, offsets).tolist() == [2, 0, 0, 4, 0, 0]
    assert backend.region_boxes(labels, offsets).tolist() == [
        [0, 0, 1, 2], [0] * 4, [0] * 4, [0, 0, 2, 3], [0] * 4, [0] * 4]


@pytest.mark.parametrize("blocks", ["", "small_blocks"])
@pytest.mark.parametrize("case", [(1, 1, 1, 1), (2, 1, 9, 4), (2, 9, 1, 4), (3, 12, 7, 20), (1, 25, 24, 3)])
def test_parity_in_triton(gpu: Any, request: pytest.FixtureRequest, case: tuple[int, ...], blocks: str) -> None:
    if blocks:
        request.getfixturevalue(blocks)
    labels, offsets = random_labels(0, *case)
    got, expected = gpu.region_boxes(labels, offsets), reference.region_boxes(labels, offsets)
    assert got.dtype == expected.dtype
    assert torch.equal(got, expected)



def test_a_partition_of_the_gpu_is_measured_there(on_gpu: Callable[..., Any]) -> None:
    """Partition.sizes and boxes go through the same dispatch."""
    labels = torch.tensor([[[0, 1], [0, 1]]], dtype=torch.int32)
    partition = on_gpu(Partition.of, labels, torch.tensor([2]))
    assert on_gpu(partition.sizes).tolist() == [2, 2]
    assert on_gpu(partition.boxes).tolist() == [[0, 0, 2, 1], [0, 1, 2, 2]]
