import math

import pytest
import torch

import spit
from attribution.games import Game, generator, grid
from spit.attribution import TokenRise
from spit.attribution.removal import Subsets
from spit.attribution.token_rise import mean_slopes, random_halves, shed_slopes, smoothed, standardised
from spit.evaluation.randomization import rank_correlation


def test_the_means_by_hand():
    seen = []

    def worth(present):
        seen.append(present.bool())
        return present[:, 3] + 0.1 * present[:, 7]

    values = TokenRise(samples=50, cells=16, slopes=0).values(Game(worth), grid(4), generator())
    [present] = seen
    assert present.shape == (50, 16)
    assert torch.equal(present.view(10, 5, 16).sum(1), torch.ones(10, 16, dtype=torch.int64))  # each in one part
    answers = present[:, 3].double() + 0.1 * present[:, 7]
    for token in range(16):
        expected = answers[present[:, token]].mean() - answers[~present[:, token]].mean()
        assert values[token] == pytest.approx(float(expected))
    assert values.argmax() == 3


def test_few_tokens_and_few_samples():
    for tokens in (1, 2, 3):
        values = TokenRise(samples=1).values(Game(lambda present: present.sum(1)), grid(2)[:tokens], generator())
        assert values.isfinite().all()
    with pytest.raises(ValueError, match="parts of at least 2"):
        TokenRise(parts=1)


def test_smoothing_by_hand():
    values, centers = torch.tensor([1.0, 0.0, 0.0]).double(), torch.tensor([[0.0, 0], [0, 2], [0, 9]]).double()
    near = math.exp(-4 / 8)
    found = smoothed(values, centers, 2)
    assert found.tolist() == pytest.approx([1 / (1 + near), near / (1 + near), 0], abs=1e-3)
    torch.testing.assert_close(smoothed(values, centers, 0.01), values)
    assert smoothed(values, centers, 0) is values
    assert standardised(torch.ones(3)).tolist() == [0, 0, 0]


def test_the_prior_is_relevance(small, images):
    model = small()
    relevance = spit.explain(model, images, "relevance", 2)
    plain, led = (spit.explain(model, images, TokenRise(samples=8, smooth=0, prior=prior, slopes=0), 2)
                  for prior in (0, 1e6))
    assert rank_correlation(led, relevance).min() > 0.999
    assert rank_correlation(plain, relevance).abs().max() < 0.9
    assert not torch.equal(spit.explain(model, images, TokenRise(samples=8), 2), plain)


def test_the_object_is_found():
    """A class that needs the middle of the picture."""
    inside = ((grid(10) - 4.5).abs() < 2).all(1)
    values = TokenRise().values(Game(lambda present: (present @ inside.double() / 16).square()), grid(10), generator())
    assert inside[values.topk(12).indices].double().mean() > 0.9
    assert values[inside].mean() > 3 * values[~inside].abs().mean()
    assert torch.equal(values, TokenRise().values(
        Game(lambda present: (present @ inside.double() / 16).square()), grid(10), generator()))


def test_halves_are_of_cells():
    halves = random_halves(grid(7), 40, 8, generator())
    assert halves.shape == (40, 49)
    assert (halves.sum(1) == 25).all()
    near, far = ((halves[:, 0] == halves[:, other]).double().mean() for other in (1, 48))
    assert near > 0.7 > far
    assert random_halves(grid(1), 2, 8, generator()).tolist() == [[True], [True]]


def test_slopes_are_those_of_present_tokens():
    present = torch.tensor([[True, True, False], [True, False, False]])
    found = mean_slopes(lambda own: torch.tensor([[1.0, 2, 0], [3, 0, 0]]).double(), present)
    assert found.tolist() == [2, 2, 0]


def test_the_lowest_slopes_are_shed_first():
    """Token 5 stands in for token 9: its slope shows when 9 is gone."""
    asked = []

    def slopes(present):
        asked.append(present[0].tolist())
        found = torch.linspace(0.1, 1.6, 16).double()[None] * present
        found[0, 9] = -1.0 * present[0, 9]
        found[0, 5] = 0.5 if present[0, 9] else -1.0
        return found

    total = shed_slopes(slopes, grid(4), 0, 2)
    assert [sum(own) for own in asked] == [16, 14]
    assert [token for token, present in enumerate(asked[1]) if not present] == [0, 9]
    assert (total[9], total[5]) == (-1, -0.5)
    assert total[15] == pytest.approx(3.2)
    assert shed_slopes(slopes, grid(4), 0, 0).tolist() == [0] * 16
    assert shed_slopes(lambda present: present.double(), grid(1), 1, 4).tolist() == [4]


def test_slopes_are_added_within_the_budget(small, images, monkeypatch):
    model, asked, found = small(), [], Subsets.slopes
    monkeypatch.setattr(Subsets, "slopes", lambda self, present: (found(self, present), asked.append(self.asked))[0])
    plain, led = (spit.explain(model, images[:1], TokenRise(samples=128, slopes=weight), 2) for weight in (0, 0.5))
    assert len(asked) == 1 + 2
    assert asked[-1] + 3 <= 128  # relevance counts as three
    assert not torch.equal(plain, led)
