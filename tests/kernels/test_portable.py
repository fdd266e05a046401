"""Operations in plain torch: the pieces of two label maps, whatever their shape."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spit.kernels import pieces
from spit.kernels.portable import join


def flood(fine: Tensor, coarse: Tensor) -> tuple[Tensor, int]:
    """The definition of :func:`pieces` for one image, pixel by pixel."""
    height, width = fine.shape
    labels = torch.full_like(fine, -1)
    count = 0
    for start in range(height * width):
        if labels.view(-1)[start] >= 0:
            continue
        stack = [divmod(start, width)]
        while stack:
            y, x = stack.pop()
            labels[y, x] = count
            for i, j in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if (0 <= i < height and 0 <= j < width and labels[i, j] < 0
                        and fine[i, j] == fine[y, x] and coarse[i, j] == coarse[y, x]):
                    stack.append((i, j))
        count += 1
    return labels, count


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), height=st.integers(1, 9), width=st.integers(1, 9), values=st.integers(1, 3))
def test_pieces(seed: int, height: int, width: int, values: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    fine, coarse = torch.randint(values, (2, 2, height, width), generator=draw, dtype=torch.int32)
    labels, counts = pieces(fine, coarse)
    assert (labels.dtype, counts.dtype) == (torch.int32, torch.int64)
    for b in range(2):
        expected, count = flood(fine[b], coarse[b])
        assert torch.equal(labels[b], expected)
        assert int(counts[b]) == count


@pytest.mark.parametrize("order", ["rising", "falling", "shuffled"])
def test_a_long_path_is_joined_in_few_rounds(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 4096
    path = torch.arange(count)
    path = {"rising": path, "falling": path.flip(0),
            "shuffled": path[torch.randperm(count, generator=torch.Generator().manual_seed(0))]}[order]
    rounds = []
    maximum = torch.maximum
    monkeypatch.setattr(torch, "maximum", lambda *args: rounds.append(1) or maximum(*args))
    assert torch.equal(join(count, path[:-1], path[1:]), torch.zeros(count, dtype=torch.int64))
    assert len(rounds) <= 12  # log2
