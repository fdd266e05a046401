import math

import pytest
import torch

import spit
from attribution.games import Game, generator, grid
from spit.attribution import TokenRise
from spit.attribution.removal import Subsets
from spit.attribution.token_rise import mean_slopes, random_parts, smoothed, standardised, token_width, whole_image
from spit.evaluation.randomization import rank_correlation
from spit.forward_pass import ForwardPass


def test_few_tokens_and_few_samples():
    for tokens in (1, 2, 3):
        values = TokenRise(samples=1).values(Game(lambda present: present.sum(1)), grid(2)[:tokens], generator())
        assert values.isfinite().all()
    with pytest.raises(ValueError, match="parts of at least 2"):
        TokenRise(parts=1)


def test_fifths_are_asked():
    seen = []
    game = Game(lambda present: (seen.append(present.sum(1)), present[:, 3] + 0.1 * present[:, 7])[1])
    values = TokenRise(samples=107, cells=16).values(game, grid(5), generator())
    assert [set(sizes.tolist()) for sizes in seen] == [{5}, {5}]
    assert game.asked == 90  # and all tokens and two halves, with gradients
    assert values.argmax() == 3


def test_smoothing_by_hand():
    values, centers = torch.tensor([1.0, 0.0, 0.0]).double(), torch.tensor([[0.0, 0], [0, 2], [0, 9]]).double()
    near = math.exp(-4 / 8)
    found = smoothed(values, centers, 2)
    assert found.tolist() == pytest.approx([1 / (1 + near), near / (1 + near), 0], abs=1e-3)
    torch.testing.assert_close(smoothed(values, centers, 0.01), values)
    assert smoothed(values, centers, 0) is values
    assert standardised(torch.ones(3)).tolist() == [0, 0, 0]


def test_the_width_of_tokens():
    assert token_width(14 * grid(6)) == pytest.approx(14)
    assert token_width(grid(1)) == token_width(grid(3)[:3]) == 0


def test_the_prior_is_relevance(small, images):
    model = small()
    seen = ForwardPass(model, images, *model.tokenize(images))
    told = whole_image(seen, torch.full((3,), 2))
    relevance = torch.stack(seen.paint(torch.cat([own for own, _ in told]).float()))
    plain, led = (spit.explain(model, images, TokenRise(samples=8, smooth=0, prior=prior, slopes=0), 2)
                  for prior in (0, 1e6))
    assert rank_correlation(led, relevance).min() > 0.999
    assert rank_correlation(plain, relevance).abs().max() < 0.9
    assert not torch.equal(spit.explain(model, images, TokenRise(samples=8), 2), plain)


def test_the_object_is_found():
    """A class that needs the middle of the picture."""
    inside = ((grid(10) - 4.5).abs() < 2).all(1)
    game = Game(lambda present: (present @ inside.double() / 16).square())
    values = TokenRise().values(game, grid(10), generator())
    assert inside[values.topk(12).indices].double().mean() > 0.9
    assert values[inside].mean() > 3 * values[~inside].abs().mean()
    assert torch.equal(values, TokenRise().values(game, grid(10), generator()))


def test_parts_are_of_cells_and_equal():
    halves = random_parts(grid(7), 40, 8, 2, generator())
    assert halves.shape == (40, 2, 49)
    assert (halves.sum(2) == 25).all()
    assert halves.any(1).all()
    near, far = ((halves[:, 0, 0] == halves[:, 0, other]).double().mean() for other in (1, 48))
    assert near > 0.7 > far
    fifths = random_parts(grid(5), 3, 40, 5, generator())
    assert torch.equal(fifths.sum(1), torch.ones(3, 25, dtype=torch.int64))
    assert random_parts(grid(1), 1, 8, 2, generator()).tolist() == [[[True], [True]]]


def test_slopes_are_those_of_present_tokens():
    present = torch.tensor([[True, True, False], [True, False, False]])
    assert mean_slopes(torch.tensor([[1.0, 2, 0], [3, 0, 0]]).double(), present).tolist() == [2, 2, 0]


def test_slopes_are_added_within_the_budget(small, images, monkeypatch):
    model, asked, found = small(), [], Subsets.slopes
    monkeypatch.setattr(Subsets, "slopes", lambda self, present: (found(self, present), asked.append(self.asked))[0])
    plain, led = (spit.explain(model, images[:1], TokenRise(samples=128, slopes=weight), 2) for weight in (0, 0.5))
    assert len(asked) == 1
    assert asked[-1] + 3 <= 128  # a pass of all tokens with gradients counts as three
    assert not torch.equal(plain, led)
