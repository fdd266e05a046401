import pytest
import torch

from spit.attribution import rank_pixels
from spit.evaluation.saco import GROUPS, group_pixels, group_salience, saco


def test_groups_are_tenths_from_the_brightest():
    maps = torch.arange(100, 0, -1).float().view(1, 10, 10)
    groups = group_pixels(rank_pixels(maps))
    assert torch.equal(groups[0], torch.arange(10)[:, None].expand(10, 10))
    torch.testing.assert_close(group_salience(maps, groups)[0], torch.arange(95.5, 0, -10).double())


def test_by_hand():
    """Salience 3, 1, 0: pairs weigh 2, 3 and 1. The second group makes the largest drop: its pair with the first is
    wrong."""
    salience = torch.tensor([[3.0, 1.0, 0.0]]).double()
    found = saco(salience, torch.tensor([[0.2, 0.5, 0.1]]).double())
    assert float(found) == pytest.approx((-2 + 3 + 1) / 6)


def test_bounds_and_scale():
    salience = torch.rand(4, GROUPS, generator=torch.Generator().manual_seed(0)).double().sort(descending=True).values
    assert saco(salience, salience).tolist() == pytest.approx([1] * 4)
    assert saco(salience, -salience).tolist() == pytest.approx([-1] * 4)
    drops = torch.rand(4, GROUPS, generator=torch.Generator().manual_seed(1)).double()
    torch.testing.assert_close(saco(7 * salience + 3, drops), saco(salience, drops))
    assert saco(torch.ones(1, GROUPS).double(), drops[:1]).tolist() == [0]
