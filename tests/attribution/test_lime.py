import sys
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import spit
from spit.attribution import Lime
from spit.attribution.lime import Ridge, similarity, slic_regions, without_tokens
from spit.errors import MissingExtra

QUICK = Lime(samples=40, regions=9)


class Bar:
    def __init__(self):
        self.lock = Lock()

    def tell(self, masks):
        pass


def linear(images):
    """A model whose probability of class 1 grows with the brightness of the upper left quarter, and nothing else."""
    light = images[:, :, :20, :20].float().mean((1, 2, 3))
    return torch.stack([torch.zeros_like(light), light], dim=1)


def test_it_finds_what_the_answer_rests_on():
    image = torch.zeros(3, 40, 40)
    image[:, :20, :20] = 1
    seen, lime = SimpleNamespace(model=linear, images=[image]), Lime(samples=200, regions=16)
    [values] = lime(seen, torch.tensor([1]))
    assert values[2:18, 2:18].min() > 10 * values[22:, 22:].abs().max()
    [against] = lime(seen, torch.tensor([0]))
    torch.testing.assert_close(against, -values)


def test_regions_share_a_value_and_masks_are_the_images_own(small, images):
    model = small()
    values = spit.explain(model, images, QUICK)
    labels = slic_regions(images[0], 9)
    for region in range(int(labels.max()) + 1):
        assert len(values[0][labels == region].unique()) == 1
    assert torch.equal(values, spit.explain(model, images, QUICK))
    assert torch.equal(QUICK.masks(images[0], 9), QUICK.masks(images[0].float() / 255, 9))
    assert not torch.equal(QUICK.masks(images[0], 9), QUICK.masks(images[1], 9))
    assert not torch.equal(QUICK.masks(images[0], 9), Lime(samples=40, seed=1).masks(images[0], 9))


def test_progress_counts_the_masks_of_each_image(small, images):
    seen = []
    telling = Lime(samples=10, regions=9, batch=4, progress=seen.append)
    assert torch.equal(spit.explain(small(), images[:2], telling),
                       spit.explain(small(), images[:2], Lime(samples=10, regions=9, batch=4)))
    assert seen == [4, 8, 10, 4, 8, 10]
    assert telling.config() == Lime(samples=10, regions=9).config()


def test_progress_may_belong_to_anything():
    """A method of an object with a lock, which cannot be copied."""
    telling = Lime(samples=10, progress=Bar().tell)
    assert telling.config() == Lime(samples=10).config()
    assert telling.config() | {"samples": 10, "share": [0.1, 0.3], "p": "omit"} == telling.config()
    assert not {"batch", "progress"} & set(telling.config())


def test_regions_are_omitted_with_chance_p(images):
    masks = Lime(samples=2000).masks(images[0], 64)
    omitted = 1 - masks.mean(1)
    assert abs(omitted.mean() - 0.2) < 0.01
    assert omitted.std() > 0.06  # p is drawn anew for each sample: more spread than .05 of one p
    assert torch.equal(Lime(samples=2000, p="keep").masks(images[0], 64), 1 - masks)


def test_tokens_of_omitted_regions_are_dropped(small, images):
    model, labels = small(), slic_regions(images[0], 9)
    regions = int(labels.max()) + 1
    find, ask = without_tokens(model, images[0], labels)
    partition, features = model.tokenize(images[:1])
    mask = torch.zeros(regions)
    mask[[0, 2]] = 1
    inside = (labels == 0) | (labels == 2)
    shares = [inside[partition.labels[0] == token].double().mean() for token in range(len(features.values))]
    kept = find(mask)
    assert kept[0].tolist() == [bool(share > 0.5) for share in shares]
    assert 0 < kept.sum() < len(shares)
    with torch.no_grad():
        answers = ask(torch.cat([find(torch.ones(regions)), kept, find(torch.zeros(regions))]))
        expected = [model(images[:1])[0], model.run(features.select(kept[0]))[0][0],
                    model.run(features.select(torch.zeros_like(kept[0])))[0][0]]  # the class token alone
    torch.testing.assert_close(answers, torch.stack(expected), atol=1e-5, rtol=1e-4)
    for p in ("omit", "keep"):
        values = spit.explain(model, images[:1], Lime(samples=40, regions=9, p=p, remove="tokens"))
        assert values.std() > 0
        assert not torch.equal(values, spit.explain(model, images[:1], Lime(samples=40, regions=9, p=p)))


def test_ridge_is_weighted_least_squares():
    random = np.random.default_rng(0)
    x, y, w = random.random((30, 4)), random.random(30), random.random(30)
    ridge = Ridge(0.5)
    ridge.fit([tuple(torch.from_numpy(part) for part in (x, y, w))])
    design = np.hstack([x, np.ones((30, 1))]) * np.sqrt(w)[:, None]
    rows = np.vstack([design, np.sqrt(0.5) * np.eye(5)[:4]])
    expected = np.linalg.lstsq(rows, np.concatenate([y * np.sqrt(w), np.zeros(4)]), rcond=None)[0][:4]
    np.testing.assert_allclose(ridge.representation().numpy(), expected, rtol=1e-5)


def test_the_kernel():
    weights = similarity(None, None, torch.tensor([[1.0, 1, 1, 1], [1, 0, 0, 0]]))
    torch.testing.assert_close(weights, torch.tensor([1, -2]).float().clamp(max=0).exp())


def test_errors(small, images, monkeypatch):
    for options, message in (({"samples": 0}, "samples of at least 1"),
                             ({"share": (0.5, 1.5)}, "share of at most 1"),
                             ({"p": "drop"}, "p to be one of omit, keep")):
        with pytest.raises(ValueError, match=message):
            Lime(**options)
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(MissingExtra, match=r"LIME needs captum; .*\[explain\]"):
        spit.explain(small(), images, "lime")
