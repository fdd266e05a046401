import itertools
import math

import pytest
import torch

from attribution.games import Game, generator, grid
from spit.attribution import TokenShapley
from spit.attribution.token_shapley import standard_error

WEIGHTS = torch.tensor([0.5, -0.25, 1.0, 0.0, 2.0, 0.125], dtype=torch.float64)


def worth(present):
    """Not additive: tokens 0 and 1 are worth more together, 2 and 3 are worth the better one."""
    return present @ WEIGHTS + present[:, 0] * present[:, 1] + present[:, 2:4].amax(1)


def shapley():
    """By definition, over all orders."""
    values = torch.zeros(6, dtype=torch.float64)
    for order in itertools.permutations(range(6)):
        present = torch.zeros(1, 6, dtype=torch.float64)
        before = worth(present)
        for token in order:
            present[0, token] = 1
            values[token] += float(worth(present) - before)
            before = worth(present)
    return values / math.factorial(6)


def test_single_tokens_approach_the_definition():
    values = TokenShapley(samples=4000, cells=6, tolerance=0).values(Game(worth), grid(3)[:6], generator())
    torch.testing.assert_close(values, shapley(), atol=0.03, rtol=0)


def test_an_additive_game_needs_one_pair():
    game = Game(lambda present: present @ WEIGHTS)
    values = TokenShapley(samples=1, cells=6).values(game, grid(3)[:6], generator())
    torch.testing.assert_close(values, WEIGHTS)
    assert game.asked == 2 + 2 * 5


@pytest.mark.parametrize("cells", [2, 5, 16])
def test_values_add_up_to_what_all_tokens_are_worth(cells):
    def smooth(present):
        return present.mean(1).square() + present[:, 3] * present[:, 12]

    for samples in (1, 200):
        values = TokenShapley(samples=samples, cells=cells).values(Game(smooth), grid(4), generator())
        assert float(values.sum()) == pytest.approx(2)


def test_reverse_orders_reduce_the_error():
    """The gain of a token in n² depends on its place alone, and a place and its reverse add up to the same."""
    game = Game(lambda present: present.sum(1).square())
    values = TokenShapley(samples=1, cells=9).values(game, grid(3), generator())
    torch.testing.assert_close(values, torch.full((9,), 9.0, dtype=torch.float64))


def test_it_stops_by_its_own_error_or_at_the_samples():
    """Pairs of orders are exact for games of two; three tokens that need each other leave an error."""
    asked = {}
    for tolerance in (0.0, 0.1, 0.5):
        game = Game(lambda present: worth(present) + 3 * present[:, 3:].prod(1))
        TokenShapley(samples=500, cells=6, tolerance=tolerance).values(game, grid(3)[:6], generator())
        asked[tolerance] = game.asked
    assert 500 - 11 < asked[0.0] <= 500
    assert asked[0.5] <= asked[0.1] < asked[0.0]
    assert asked[0.5] >= 2 + 4 * 10


def test_the_standard_error():
    found = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
    assert standard_error(found) == pytest.approx(math.sqrt((2 / 2 + 0) / 2))
