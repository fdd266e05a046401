from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

BIG = 77  # what memory held before


@pytest.fixture
def number(on_gpu: Callable[..., Any]) -> Callable[..., tuple[Tensor, ...]]:
    """``components`` of lists, with the sums it was given."""

    def run(chosen: list[int], offsets: list[int], longest: int, room: int, words: int = 1) -> tuple[Tensor, ...]:
        def call(chosen: Tensor, offsets: Tensor, sums: Tensor) -> tuple[Tensor, ...]:
            components = import_module("spit.kernels.gpu.forest").components
            return *components(chosen, offsets, longest, sums, words), sums

        answer = on_gpu(call, torch.tensor(chosen, dtype=torch.int32), torch.tensor(offsets),
                        torch.full((room * words,), BIG))
        return tuple(tensor.cpu() for tensor in answer)

    return run


@pytest.mark.parametrize(("chosen", "trees"), [
    ([0], [0]),  # alone
    ([0, 1, 2], [0, 1, 2]),  # self-loops
    ([1, 0], [0, 0]),  # a mutual pair: its smaller end is the root
    ([2, 3, 0, 1], [0, 1, 0, 1]),  # two pairs that interleave
    ([1, 2, 3, 4, 4], [0, 0, 0, 0, 0]),  # a chain up to a self-loop
    ([1, 2, 3, 2], [0, 0, 0, 0]),  # a chain up to a pair
    ([0, 0, 1, 2], [0, 0, 0, 0]),  # a chain down
    ([3, 4, 2, 0, 1, 4], [0, 1, 2, 0, 1, 1]),
    ([1, 1, 1, 5, 5, 4], [0, 0, 0, 1, 1, 1]),  # a star, and a pair with a leaf
])
def test_one_image(number: Callable[..., tuple[Tensor, ...]], chosen: list[int], trees: list[int]) -> None:
    roots, numbers, offsets, _ = number(chosen, [0, len(chosen)], len(chosen), len(chosen))
    assert roots.dtype == numbers.dtype == torch.int32
    assert offsets.dtype == torch.int64
    assert offsets.tolist() == [0, max(trees) + 1]
    assert numbers[roots.long()].tolist() == trees
    assert torch.equal(roots[roots.long()], roots)


@pytest.mark.parametrize("longest", [4, 600, 2000])  # an upper bound serves as well: 1, 2 and 4 blocks
def test_several_images_and_room_behind_them(number: Callable[..., tuple[Tensor, ...]], longest: int) -> None:
    chosen = [1, 0, 2, 3, 5, 6, 7, 6, 99, 99]  # images of 3, 1 and 4; the rest is not theirs
    roots, numbers, offsets, _ = number(chosen, [0, 3, 4, 8], longest, 10)
    assert offsets.tolist() == [0, 2, 3, 4]
    assert roots[:8].tolist() == [0, 0, 2, 3, 6, 6, 6, 6]
    assert numbers[roots[:8].long()].tolist() == [0, 0, 1, 2, 3, 3, 3, 3]


@pytest.mark.parametrize("words", [1, 3])
@pytest.mark.parametrize("room", [3, 5, 8])
def test_sums_are_emptied_as_far_as_trees_can_reach(
    number: Callable[..., tuple[Tensor, ...]], words: int, room: int
) -> None:
    *_, sums = number([1, 0, 2, 4, 3], [0, 3, 5], 3, room, words)
    assert sums.tolist() == [0] * words * min(room, 5) + [BIG] * words * max(room - 5, 0)


@pytest.mark.parametrize("block", [2, 16])
def test_chains_that_cross_blocks(
    number: Callable[..., tuple[Tensor, ...]], monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(import_module("spit.kernels.gpu.forest"), "BLOCK", block)
    monkeypatch.setattr(import_module("spit.kernels.gpu.launch").blocks, "__defaults__", (block,))
    first = [*range(1, 40), 38]  # a chain of 40 vertices up to a pair
    second = [40, *range(40, 59), 60, *range(60, 69)]  # two chains down, of 20 and 10
    roots, numbers, offsets, sums = number(first + second, [0, 40, 70], 40, 70)
    assert offsets.tolist() == [0, 1, 3]
    assert roots.tolist() == [38] * 40 + [40] * 20 + [60] * 10
    assert numbers[roots.long()].tolist() == [0] * 40 + [1] * 20 + [2] * 10
    assert not sums.any()
