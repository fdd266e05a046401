import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spit.tokenizers import PatchTokenizer


def test_hand_case() -> None:
    part = PatchTokenizer(2)(torch.zeros(3, 3, 5))
    assert part.labels.tolist() == [[[0, 0, 1, 1, 2], [0, 0, 1, 1, 2], [3, 3, 4, 4, 5]]]
    assert part.counts.tolist() == [6]
    assert part.sizes().tolist() == [4, 4, 2, 2, 2, 1]
    assert part.boxes().tolist()[2] == [0, 4, 2, 5]
    assert part.frames.tolist() == [[0, 0, 2, 2], [0, 2, 2, 4], [0, 4, 2, 6], [2, 0, 4, 2], [2, 2, 4, 4], [2, 4, 4, 6]]
    assert part.labels.dtype == part.frames.dtype == torch.int32


@settings(deadline=None, max_examples=40)
@given(batch=st.integers(1, 3), height=st.integers(1, 20), width=st.integers(1, 20), size=st.integers(1, 24))
def test_any_size(batch: int, height: int, width: int, size: int) -> None:
    part = PatchTokenizer(size)(torch.zeros(batch, 3, height, width))
    count = math.ceil(height / size) * math.ceil(width / size)
    assert part.counts.tolist() == [count] * batch
    assert part.labels.unique().tolist() == list(range(count))
    boxes, frames = part.boxes(), part.frames
    assert torch.equal(boxes[:, :2], frames[:, :2])
    assert torch.equal(boxes[:, 2:], frames[:, 2:].minimum(torch.tensor([height, width])))
    assert (frames[:, 2:] - frames[:, :2] == size).all()
    assert torch.equal(part.sizes(), (boxes[:, 2:] - boxes[:, :2]).prod(1))


def test_default_is_the_paper_s_16() -> None:
    assert PatchTokenizer() == PatchTokenizer(16)
    assert PatchTokenizer()(torch.zeros(2, 3, 224, 224)).counts.tolist() == [196, 196]


@pytest.mark.parametrize("size", [0, -1])
def test_a_patch_has_pixels(size: int) -> None:
    with pytest.raises(ValueError, match=f"got {size}"):
        PatchTokenizer(size)


@pytest.mark.parametrize("size", [2.5, 16.0, "16", None])
def test_a_patch_has_whole_pixels(size: object) -> None:
    with pytest.raises((TypeError, ValueError), match=str(size)):
        PatchTokenizer(size)


@pytest.mark.parametrize("size", [2**16 + 1, 2**31, 2**32, 2**63, 10**30])
def test_a_size_beyond_any_image(size):
    with pytest.raises(ValueError, match=f"expected size of at most 65536, got {size}"):
        PatchTokenizer(size)
    part = PatchTokenizer(2**16)(torch.zeros(1, 3, 5, 7))
    assert part.counts.tolist() == [1]
    assert part.frames.tolist() == [[0, 0, 2**16, 2**16]]
