import pytest
import torch

from attribution.games import Game, generator, grid
from spit.attribution import TokenRise


def test_the_means_by_hand():
    seen = []

    def worth(present):
        seen.append(present.bool())
        return present[:, 3] + 0.1 * present[:, 7]

    values = TokenRise(samples=50, cells=16).values(Game(worth), grid(4), generator())
    [present] = seen
    answers = present[:, 3].double() + 0.1 * present[:, 7]
    for token in range(16):
        expected = answers[present[:, token]].mean() - answers[~present[:, token]].mean()
        assert values[token] == pytest.approx(float(expected))
    assert values.argmax() == 3


def test_a_quarter_is_present():
    shares = []
    game = Game(lambda present: (shares.append(present.mean()), present[:, 0])[1])
    TokenRise(samples=400).values(game, grid(12), generator())
    assert shares[0] == pytest.approx(0.25, abs=0.02)
    with pytest.raises(ValueError, match="keep below 1"):
        TokenRise(keep=1.0)


def test_a_token_that_is_always_or_never_there():
    values = TokenRise(samples=1).values(Game(lambda present: present.sum(1)), grid(3), generator())
    assert values.isfinite().all()


def test_the_object_is_found():
    """A class that needs the middle of the picture."""
    inside = ((grid(10) - 4.5).abs() < 2).all(1)
    values = TokenRise().values(Game(lambda present: (present @ inside.double() / 16).square()), grid(10), generator())
    assert inside[values.topk(12).indices].double().mean() > 0.9
    assert values[inside].mean() > 5 * values[~inside].abs().mean()
    assert torch.equal(values, TokenRise().values(
        Game(lambda present: (present @ inside.double() / 16).square()), grid(10), generator()))
