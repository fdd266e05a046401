import torch

from attribution.games import Game, generator, grid
from spit.attribution import TokenOcclusion


def test_single_tokens_by_hand():
    weights = torch.linspace(-1, 2, 16, dtype=torch.float64)
    game = Game(lambda present: present @ weights + 0.5)
    values = TokenOcclusion(samples=16, cells=16).values(game, grid(4), generator())
    torch.testing.assert_close(values, weights)
    assert game.asked == 17


def test_cells_are_left_out_together():
    """Two tokens that show the same: neither is missed alone, both are as a cell."""
    def either(present):
        return present[:, :2].amax(1)

    alone = TokenOcclusion(samples=16, cells=16).values(Game(either), grid(4), generator())
    assert alone.abs().max() == 0
    together = TokenOcclusion(samples=200, cells=4).values(Game(either), grid(4), generator())
    assert set(together.topk(2).indices.tolist()) == {0, 1}
    assert together[0] > 0.3
    assert together[15] == 0


def test_one_division_at_least():
    game = Game(lambda present: present.sum(1))
    TokenOcclusion(samples=3, cells=8).values(game, grid(4), generator())
    assert game.asked == 9
