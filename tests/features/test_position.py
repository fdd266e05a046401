import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spit.features.position import position_features


def quarters(height: int, width: int) -> torch.Tensor:
    y, x = torch.arange(height)[:, None] * 2 // height, torch.arange(width) * 2 // width
    return (2 * y + x).int()[None]


def test_rows_come_before_columns() -> None:
    features = position_features(quarters(8, 8), torch.tensor([0, 4]), 2, 0.0)
    assert torch.equal(features, torch.eye(4))  # (top, left), (top, right), (bottom, left), (bottom, right)


def test_a_wide_image_keeps_its_aspect() -> None:
    """An image twice as wide as high covers y from −½ to ½: the middle two of four rows of cells."""
    features = position_features(torch.zeros(1, 8, 16, dtype=torch.int32), torch.tensor([0, 1]), 4, 0.0).view(4, 4)
    expected = torch.zeros(4, 4)
    expected[1:3] = 1 / 8
    torch.testing.assert_close(features, expected)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 16))
def test_empirical_histograms_sum_to_one(height: int, width: int, bins: int) -> None:
    labels = (torch.arange(height * width).view(1, height, width) % 3).int()
    count = int(labels.max()) + 1
    features = position_features(labels, torch.tensor([0, count]), bins, 0.0)
    torch.testing.assert_close(features.sum(1), torch.ones(count))


def test_mirrored_labels_give_mirrored_histograms() -> None:
    labels = (torch.rand(1, 9, 12, generator=torch.Generator().manual_seed(0)) > 0.5).int()
    offsets = torch.tensor([0, 2])
    here = position_features(labels, offsets, 6, 0.05).view(2, 6, 6)
    there = position_features(labels.flip(2), offsets, 6, 0.05).view(2, 6, 6)
    assert not torch.allclose(here, there, atol=1e-4)
    torch.testing.assert_close(there, here.flip(2), rtol=0, atol=1e-6)


def test_two_sizes_of_one_partition_agree() -> None:
    """Positions are relative: twice the pixels, nearly the same histogram."""
    small = position_features(quarters(64, 64), torch.tensor([0, 4]), 8, 0.1)
    large = position_features(quarters(128, 128), torch.tensor([0, 4]), 8, 0.1)
    torch.testing.assert_close(large, small, rtol=0, atol=2e-3)
    assert small.max() > 0.05
