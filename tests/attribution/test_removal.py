from threading import Lock

import pytest
import torch

import spit
from attribution.games import generator, grid
from spit.attribution import TokenOcclusion, TokenRise, TokenShapley
from spit.attribution.absence import ImageTokens
from spit.attribution.removal import Subsets, random_cells


class Locked:
    def __init__(self):
        self.lock = Lock()

    def tell(self, passes):
        pass


METHODS = (TokenOcclusion(samples=20, cells=5), TokenRise(samples=20, cells=5), TokenShapley(samples=60, cells=5))


@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_absent_tokens_are_not_in_the_sequence(small, images, tokenizer):
    model = small(tokenizer)
    _, features = model.tokenize(images[:1])
    count = len(features.values)
    present = torch.rand(9, count, generator=generator()) < 0.5
    present[0], present[1] = True, False
    seen = []
    ask = Subsets(model, ImageTokens(features.values), 2, batch=4, progress=seen.append)
    got = ask(present)
    with torch.no_grad():
        expected = [model.run(features.select(own))[0].softmax(1)[0, 2] for own in present]
    torch.testing.assert_close(got, torch.stack(expected), atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(got[0], model(images[:1]).softmax(1)[0, 2], atol=1e-6, rtol=1e-4)
    assert (ask.asked, seen) == (9, [4, 8, 9])
    model.backbone.compiled = model.backbone.run_blocks  # as compile() sets it
    torch.testing.assert_close(Subsets(model, ImageTokens(features.values), 2)(present), got, atol=1e-6, rtol=1e-4)


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


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_batches_and_torch_s_seed_do_not_matter(small, images, method):
    model = small()
    expected = spit.explain(model, images[:1], method)
    torch.manual_seed(5)
    torch.testing.assert_close(spit.explain(model, images[:1], method.replace(batch=3)), expected)
    assert not torch.equal(spit.explain(model, images[:1], method.replace(seed=1)), expected)
    assert "batch" not in method.config()
    assert method.config()["samples"] == method.samples
    assert method.replace(progress=Locked().tell).config() == method.config()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_progress_and_errors(small, images, method):
    seen = []
    spit.explain(small(), images[:1], method.__class__(**{**method.config(), "progress": seen.append}))
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= method.samples + 1
    for options, message in (({"samples": 0}, "samples of at least 1"), ({"cells": 1}, "cells of at least 2")):
        with pytest.raises(ValueError, match=message):
            type(method)(**options)
