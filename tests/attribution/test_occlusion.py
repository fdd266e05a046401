import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spit.attribution import occlude, rank_pixels


def test_ranks_by_hand():
    maps = torch.tensor([[[0.1, 0.5], [0.5, -1.0]]])
    assert rank_pixels(maps).tolist() == [[[2, 0], [1, 3]]]  # equal values in raster order


@given(st.integers(1, 6), st.integers(1, 6), st.floats(0, 1), st.integers(0, 99))
def test_exactly_a_share_goes_and_the_rest_stays(height, width, share, seed):
    random = torch.Generator().manual_seed(seed)
    image = torch.rand(1, 3, height, width, generator=random)
    ranks = rank_pixels(torch.randint(0, 3, (1, height, width), generator=random).float())
    removed, kept = (occlude(image, ranks, share, keep) for keep in (False, True))
    mean = image.mean((2, 3), keepdim=True)
    gone = ranks[:, None] < round(share * height * width)
    assert torch.equal(removed, torch.where(gone, mean, image))
    assert torch.equal(kept, torch.where(gone, image, mean))


def test_bytes_become_floats_and_inputs_stay():
    image = torch.arange(12, dtype=torch.uint8).view(1, 3, 2, 2)
    before, ranks = image.clone(), torch.arange(4).view(1, 2, 2)
    got = occlude(image, ranks, 0.25)
    torch.testing.assert_close(got[0, :, 0, 0] * 255, torch.tensor([1.5, 5.5, 9.5]))
    torch.testing.assert_close(got[0, 0, 0, 1] * 255, torch.tensor(1.0))
    assert torch.equal(image, before)


def test_errors():
    image, ranks = torch.zeros(1, 3, 2, 2), torch.zeros(1, 2, 2, dtype=torch.int64)
    with pytest.raises(ValueError, match="from 0 to 1, got 2"):
        occlude(image, ranks, 2)
    with pytest.raises(ValueError, match=r"\(1, 2, 2\)"):
        occlude(image, ranks[0], 0.5)
