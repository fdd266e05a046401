"""Parts by name, and tables of positions on another grid."""

import torch
from torch import nn

from spit.seams.named import part, resample


def test_part() -> None:
    module = nn.Sequential(nn.Sequential(nn.Identity(), nn.Linear(2, 3)))
    assert part(module, "0.1.out_features") == 3
    assert part(module, "") is module
    assert part(module, "0.missing.weight") is None


def test_a_table_on_its_own_grid_stays() -> None:
    table = torch.rand(6, 4)
    torch.testing.assert_close(resample(table, (2, 3), (2, 3)), table)


def test_a_table_is_read_at_the_same_places_of_the_image() -> None:
    rows, columns = torch.meshgrid(torch.arange(8.0), torch.arange(12.0), indexing="ij")
    other = resample(torch.stack([rows, columns], -1).flatten(0, 1), (8, 12), (16, 6)).unflatten(0, (16, 6))
    near = {"rtol": 0, "atol": 0.06}  # bicubic weights do not keep a slope
    torch.testing.assert_close(other[4:12, 0, 0], (torch.arange(4.0, 12) + 0.5) / 2 - 0.5, **near)
    torch.testing.assert_close(other[0, 1:5, 1], (torch.arange(1.0, 5) + 0.5) * 2 - 0.5, **near)
