import pytest
import torch

from spit.evaluation.pointing import points_at, share_outside

MASK = torch.zeros(1, 4, 4, dtype=torch.bool)
MASK[:, :2, :2] = True


def test_the_brightest_token_is_on_the_object_or_not():
    maps = torch.zeros(1, 4, 4)
    maps[:, 0, 0] = 2
    assert points_at(maps, MASK).tolist() == [1]
    maps[:, 3] = 3
    assert points_at(maps, MASK).tolist() == [0]
    maps[:, 0] = 3  # a token of eight pixels, two of them on the object
    assert points_at(maps, MASK).tolist() == [2 / 8]


def test_the_share_outside():
    maps = torch.zeros(2, 4, 4)
    maps[:, 0, 0], maps[:, 3, 3] = 3, 1
    maps[1, 2, 2] = -5  # what speaks against the class lights nothing up
    assert share_outside(maps, MASK.expand(2, -1, -1)).tolist() == pytest.approx([0.25, 0.25])
    assert share_outside(-maps.abs(), MASK.expand(2, -1, -1)).tolist() == pytest.approx([0.75, 0.75])
