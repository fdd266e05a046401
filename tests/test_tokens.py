import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spit.embedder import put_class_token
from spit.tokens import Tokens, cat_offsets, offsets_of

counts_of = st.lists(st.integers(0, 5), min_size=1, max_size=5)


def make(counts: list[int], width: int = 2) -> Tokens:
    offsets = offsets_of(torch.tensor(counts))
    return Tokens(torch.arange(int(offsets[-1]) * width, dtype=torch.float32).reshape(-1, width), offsets)


def test_offsets_of_hand_case() -> None:
    assert offsets_of(torch.tensor([3, 0, 2])).tolist() == [0, 3, 3, 5]
    assert cat_offsets([torch.tensor([0, 3, 3]), torch.tensor([0, 2])]).tolist() == [0, 3, 3, 5]


def test_hand_case() -> None:
    tokens = make([2, 0, 1])
    assert len(tokens) == 3
    assert tokens.counts.tolist() == [2, 0, 1]
    assert tokens.image_of.tolist() == [0, 0, 2]
    assert [part.tolist() for part in tokens] == [[[0, 1], [2, 3]], [], [[4, 5]]]
    assert [part.shape for part in tokens.split()] == [(2, 2), (0, 2), (1, 2)]


def test_repr_has_shapes_and_no_values() -> None:
    assert repr(make([2, 0, 1])) == "Tokens(3 images, values (3, 2) torch.float32)"
    assert repr(make([4], 7)) == "Tokens(1 image, values (4, 7) torch.float32)"


@pytest.mark.parametrize(("values", "offsets", "error", "message"), [
    (torch.zeros(3), torch.tensor([0, 3]), ValueError, r"values of shape \(ΣN, D\) .*, got \(3,\) and \(2,\)"),
    (torch.zeros(3, 1), torch.tensor(3), ValueError, r"got \(3, 1\) and \(\)"),
    (torch.zeros(3, 1), torch.tensor([0, 3]).int(), TypeError, "int64 offsets, got torch.int32; call"),
    (torch.zeros(3, 1), torch.tensor([0, 3], device="meta"), ValueError, "on one device, got cpu and meta"),
])
def test_other_shapes_are_refused(values: Tensor, offsets: Tensor, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Tokens(values, offsets)


def test_counts_on_the_host_are_kept() -> None:
    tokens = make([2, 1])
    assert tokens.host_counts == (2, 1)
    other = tokens.replace(tokens.values * 2)
    assert other.known_counts == (2, 1)
    assert put_class_token(other, torch.zeros(other.values.shape[1])).known_counts == (3, 2)
    assert make([2, 1]).replace(tokens.values).known_counts is None


def test_replace_keeps_the_offsets() -> None:
    tokens = make([2, 1])
    wider = tokens.replace(torch.zeros(3, 7))
    assert wider.values.shape == (3, 7)
    assert wider.offsets is tokens.offsets


@settings(deadline=None, max_examples=50)
@given(counts=counts_of, seed=st.integers(0, 1000))
def test_select_keeps_each_image_apart(counts: list[int], seed: int) -> None:
    tokens = make(counts)
    keep = torch.rand(len(tokens.values), generator=torch.Generator().manual_seed(seed)) < 0.5
    kept = tokens.select(keep)
    known = tokens.select(keep, [int(own.sum()) for own in torch.split(keep, counts)])
    assert torch.equal(known.values, kept.values)
    assert torch.equal(known.offsets, kept.offsets)
    assert known.host_counts == kept.host_counts == tuple(kept.counts.tolist())
    masks = keep.split(counts)
    assert len(kept) == len(tokens)
    assert kept.offsets.dtype == torch.int64
    for part, whole, mask in zip(kept, tokens, masks, strict=True):
        assert torch.equal(part, whole[mask])


def test_select_can_empty_an_image() -> None:
    kept = make([2, 1]).select(torch.tensor([False, False, True]))
    assert kept.counts.tolist() == [0, 1]
    assert make([2, 1]).select(torch.zeros(3, dtype=torch.bool)).offsets.tolist() == [0, 0, 0]


@settings(deadline=None, max_examples=50)
@given(batches=st.lists(counts_of, min_size=1, max_size=4))
def test_cat_lays_batches_end_to_end(batches: list[list[int]]) -> None:
    parts = [make(counts) for counts in batches]
    whole = Tokens.cat(parts)
    assert whole.counts.tolist() == [count for counts in batches for count in counts]
    for got, expected in zip(whole, (image for part in parts for image in part), strict=True):
        assert torch.equal(got, expected)
