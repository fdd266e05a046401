import math
from threading import Lock

import pytest
import torch
from scipy import stats

import spit
from attribution.games import Game, generator, grid
from spit.attribution import TokenRise
from spit.attribution.removal import Subsets
from spit.attribution.token_rise import (
    mean_slopes,
    random_cells,
    random_parts,
    smoothed,
    standardised,
    token_width,
    whole_image,
)
from spit.forward_pass import ForwardPass


class Locked:
    """Progress that cannot be copied."""

    def __init__(self):
        self.lock = Lock()

    def tell(self, passes):
        pass


def correlation(maps, others):
    """Spearman's, of each image."""
    return [stats.spearmanr(one.flatten(), other.flatten()).statistic for one, other in zip(maps, others, strict=True)]


def test_batches_and_torch_s_seed_do_not_matter(small, images):
    model, method = small(), TokenRise(samples=20, cells=5)
    expected = spit.explain(model, images[:1], method)
    torch.manual_seed(5)
    torch.testing.assert_close(spit.explain(model, images[:1], method.replace(batch=3)), expected)
    assert not torch.equal(spit.explain(model, images[:1], method.replace(seed=1)), expected)
    assert "batch" not in method.config()
    assert method.config()["samples"] == 20
    assert method.replace(progress=Locked().tell).config() == method.config()


def test_progress(small, images):
    seen = []
    spit.explain(small(), images[:1], TokenRise(samples=20, cells=5, progress=seen.append))
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 21


def test_cells_are_of_neighbours_and_differ_from_draw_to_draw():
    centers = grid(8)
    cells = random_cells(centers, 40, 6, generator())
    assert cells.shape == (40, 64)
    assert set(cells.unique().tolist()) == set(range(6))
    near, far = ((cells[:, 0] == cells[:, other]).double().mean() for other in (1, 63))
    assert near > 0.5 > 0.1 > far
    assert not torch.equal(cells[0], cells[1])
    alone = random_cells(centers[:5], 3, 40, generator())
    assert all(sorted(draw) == list(range(5)) for draw in alone.tolist())


def test_few_tokens_and_few_samples():
    for tokens in (1, 2, 3):
        values = TokenRise(samples=1).values(Game(lambda present: present.sum(1)), grid(2)[:tokens], generator())
        assert values.isfinite().all()
    for options in ({"parts": 1}, {"samples": 0}, {"cells": 1}):
        with pytest.raises(ValueError, match="of at least"):
            TokenRise(**options)


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
    assert min(correlation(led, relevance)) > 0.999
    assert max(map(abs, correlation(plain, relevance))) < 0.9
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
