"""spit.correspond: the attention and the colours by hand, shapes, batches, errors."""

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

import spit
from spit.answers import Segment
from spit.model import SpitModel
from spit.predictor import Predictor
from spit.segmentation.correspondence import Correspondence, all_pairs, colored_share, mix, pseudo_colors, scenes
from spit.segmentation.saliency import TokenCut

Scene = Callable[..., Tensor]


def test_each_target_token_mixes_the_source_s_colours() -> None:
    """Two source tokens e₁, e₂ and a target token between: at temperature 1 weights e^.6 : e^.8."""
    source = torch.eye(2, dtype=torch.float64)
    target = torch.tensor([[0.6, 0.8], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    colors = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
    share = 1 / (1 + torch.tensor(0.2).double().exp())
    torch.testing.assert_close(mix(source, target, colors, 1.0)[0], torch.stack([share, 1 - share, share * 0]))
    torch.testing.assert_close(mix(source, target[1:], colors), colors)  # at 0.01 the like one takes all


def test_components_are_ordered_signed_and_cut() -> None:
    """Points on three axes: 2, 1 and 0.5 apart; the last two tokens are background."""
    axes = torch.diag(torch.tensor([2.0, 1.0, 0.5, 0.0], dtype=torch.float64))
    tokens = torch.cat([axes, -axes])
    side = torch.tensor([True] * 6 + [False] * 2)
    colors = pseudo_colors(tokens, side)
    assert colors[0, 0] == 1  # the loading of the largest magnitude is positive
    assert colors[4, 0] == 0
    torch.testing.assert_close(colors[:6, 1], torch.tensor([0.5, 1, 0.5, 0.5, 0.5, 0], dtype=torch.float64))
    assert not colors[6:].any()
    assert torch.equal(pseudo_colors(tokens, side), colors)
    assert not pseudo_colors(tokens, torch.zeros(8, dtype=torch.bool)).any()


def test_one_token_and_few_columns() -> None:
    assert pseudo_colors(torch.ones(1, 5, dtype=torch.float64), torch.tensor([True])).tolist() == [[0.5, 0.5, 0.5]]
    two = pseudo_colors(torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64), torch.tensor([True, True]))
    assert two.shape == (2, 3)


def test_shapes_and_an_image_to_itself(model: SpitModel, scene: Scene) -> None:
    source, other = scene(40, 48, 0), scene(30, 36, 1)
    found = spit.correspond(model, source, [source, other])
    assert found.source.shape == (40, 48, 3)
    assert [tuple(target.shape) for target in found.targets] == [(40, 48, 3), (30, 36, 3)]
    assert found.source.dtype == torch.float32
    for colors in (found.source, *found.targets):
        assert 0 <= float(colors.min()) <= float(colors.max()) <= 1 + 1e-6
    batch = spit.correspond(model, source, torch.stack([source, source]))
    assert isinstance(batch.targets, Tensor)
    assert batch.targets.shape == (2, 40, 48, 3)


def test_how_it_reads() -> None:
    assert repr(Correspondence(torch.zeros(3, 5, 3), torch.zeros(2, 4, 4, 3))) == (
        "Correspondence(source 5 × 3, 2 targets)")


def test_a_target_s_answer_is_its_own(model: SpitModel, scene: Scene) -> None:
    images = [scene(30, 36, seed) for seed in range(3)]
    together = spit.correspond(model, images[0], images[1:])
    for index in (0, 1):
        alone = spit.correspond(model, images[0], images[index + 1])
        assert torch.equal(together.targets[index], alone.targets[0])


def test_all_pairs_are_the_single_ones(model: SpitModel, scene: Scene) -> None:
    images = [scene(30, 36, 0), scene(25, 40, 1)]
    grid = all_pairs(scenes(Predictor(model)(images, crop=False), TokenCut()))
    for m, source in enumerate(images):
        single = spit.correspond(model, source, images)
        assert torch.equal(grid[m][m], single.source)
        assert torch.equal(grid[m][1 - m], single.targets[1 - m])


def test_how_much_is_coloured(model: SpitModel, scene: Scene) -> None:
    """A target of the source's foreground alone is coloured, one of its background alone is black."""
    [whole] = scenes(Predictor(model)(scene(30, 36, 0), crop=False), TokenCut())
    areas = whole.paint(whole.side[:, None].float())
    assert colored_share(whole, whole) == pytest.approx(float(areas.mean()), abs=1e-4)
    for side, share in ((whole.side, 1), (~whole.side, 0)):
        token = whole.tokens[side][:1].expand_as(whole.tokens)
        alike = replace(whole, tokens=token)
        assert colored_share(whole, alike, 1e-4) == pytest.approx(share, abs=1e-4)


def test_predictions_are_the_images_they_are_of(model: SpitModel, scene: Scene) -> None:
    predictor, source, others = Predictor(model), scene(30, 36, 0), [scene(25, 40, 1), scene(40, 32, 2)]
    expected = spit.correspond(model, source, others, size=20, temperature=0.05, tau=0.3)
    first, rest = (predictor(images, crop=False, size=20) for images in (source, others))
    found = spit.correspond(first, rest, temperature=0.05, tau=0.3)
    assert torch.equal(found.source, expected.source)
    assert all(torch.equal(a, b) for a, b in zip(found.targets, expected.targets, strict=True))
    assert [tuple(target.shape) for target in found.targets] == [(25, 40, 3), (40, 32, 3)]
    for arguments in ((first, others), (first, rest, others)):
        with pytest.raises(TypeError, match="a prediction of the targets"):
            spit.correspond(*arguments)
    with pytest.raises(TypeError, match="got no targets"):
        spit.correspond(model, source)  # type: ignore[call-arg]


def test_refusals(model: SpitModel, scene: Scene) -> None:
    image = scene()
    with pytest.raises(ValueError, match="one source image, got 2"):
        spit.correspond(model, torch.stack([image, image]), image)
    with pytest.raises(ValueError, match="temperature above 0"):
        spit.correspond(model, image, image, temperature=0)
    with pytest.raises(ValueError, match="from -3 to 2"):
        spit.correspond(model, image, image, layer=9)
    for name in ("method", "token_head", "clean"):
        with pytest.raises(ValueError, match=f"unknown option of correspond '{name}'"):
            spit.correspond(model, image, image, **{name: None})


def test_its_options_are_those_of_the_cut_that_it_reads(model: SpitModel, scene: Scene) -> None:
    image = torch.rand(3, 30, 36, generator=torch.Generator().manual_seed(0))
    disc, noise = (Predictor(model)(one, crop=False) for one in (scene(30, 36, 0), image))
    for prediction, changes in ((disc, {"tau": 0.9}), (disc, {"foreground": "class_token"}), (noise, {"layer": 0}),
                                (noise, {"cut_on": "keys"})):
        [own], [same], [other] = (scenes(prediction, cut) for cut in (
            Segment(), TokenCut(), TokenCut.from_dict(changes)))
        assert torch.equal(own.side, same.side)
        assert not torch.equal(other.side, same.side), changes
    assert {item.name for item in fields(TokenCut)} == {"tau", "foreground", "layer", "cut_on"}
