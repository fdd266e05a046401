"""spit.segment: shapes, batches, sizes, options, errors, and which side is the foreground."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import spit
from spit.answers import Segment
from spit.model import SpitModel
from spit.partition import Partition
from spit.predictor import Predictor
from spit.segmentation.saliency import orient
from spit.tokens import Tokens

Scene = Callable[..., Tensor]
LABELS = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]], dtype=torch.int32)


@pytest.mark.parametrize("tau", [None, 0.5])
def test_a_disc_is_found(tau: float | None, model: SpitModel, scene: Scene) -> None:
    """Even random weights keep colours apart."""
    image = scene()
    found = spit.segment(model, image, tau=tau)
    y, x = torch.meshgrid(torch.arange(40), torch.arange(48), indexing="ij")
    disc = (y - 20) ** 2 + (x - 24) ** 2 < 13**2
    mask = found.mask[0]
    assert float((mask & disc).sum() / (mask | disc).sum()) > 0.8


def test_shapes_and_meaning(model: SpitModel, scene: Scene) -> None:
    images = torch.stack([scene(seed=seed) for seed in range(3)])
    before = images.clone()
    found = spit.segment(model, images)
    assert torch.equal(images, before)
    assert found.saliency.shape == found.mask.shape == (3, 40, 48)
    assert (found.saliency.dtype, found.mask.dtype, len(found)) == (torch.float32, torch.bool, 3)
    assert 0 <= float(found.saliency.min()) <= float(found.saliency.max()) <= 1
    assert torch.equal(found.mask, found.saliency > 0.5)
    assert torch.equal(spit.segment(model, images[1], tau=float(found.tau[1])).mask[0], found.mask[1])
    assert torch.equal(found.mask, found.partition.paint(found.values > 0))
    for values in torch.split(found.values, found.partition.counts.tolist()):
        assert float(values.mean()) == pytest.approx(0, abs=1e-5)
        assert float(values.std(correction=0)) == pytest.approx(2, abs=1e-5)
    assert "foreground [" in repr(found)


@pytest.mark.parametrize("options", [{}, {"cut_on": "keys", "foreground": "class_token"},
                                     {"tau": 1 / 3}, {"layer": 0, "foreground": "largest"},
                                     {"size": 24}])
def test_an_image_s_answer_is_its_own(options: dict[str, object], model: SpitModel, scene: Scene) -> None:
    images = [scene(40, 48, 0), scene(40, 48, 1), scene(33, 60, 2)]
    together = spit.segment(model, images, **options)  # type: ignore[arg-type]
    for index, image in enumerate(images):
        alone = spit.segment(model, image, **options)  # type: ignore[arg-type]
        assert torch.equal(together.saliency[index], alone.saliency[0])
        assert torch.equal(together.mask[index], alone.mask[0])
    backwards = spit.segment(model, images[::-1], **options)  # type: ignore[arg-type]
    assert all(torch.equal(a, b) for a, b in zip(backwards.mask, together.mask[::-1], strict=True))


@pytest.mark.parametrize("sizes", [[(40, 48)] * 3, [(40, 48), (33, 60), (40, 48)]])
def test_images_one_by_one_and_in_one_prediction(sizes: list[tuple[int, int]], model: SpitModel, scene: Scene) -> None:
    """The same to the last bit, with two images at a time too."""
    predictor, question = Predictor(model), Segment()
    images = [scene(*size, seed) for seed, size in enumerate(sizes)]
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = question.ask(predictor, images)
    finally:
        torch.set_num_threads(before)
    expected = question.of(predictor(images, crop=False))
    assert isinstance(found.mask, Tensor) == isinstance(expected.mask, Tensor) == (len(set(sizes)) == 1)
    for one, other in zip([*found.saliency, *found.mask, *found.partition.blocks],
                          [*expected.saliency, *expected.mask, *expected.partition.blocks], strict=True):
        assert torch.equal(one, other)
    for name in ("values", "tau"):
        assert torch.equal(getattr(found, name), getattr(expected, name))
    assert torch.equal(found.partition.offsets, expected.partition.offsets)


def test_tokens_join_for_a_mask_unless_all_are_asked_for(model: SpitModel, scene: Scene) -> None:
    predictor = Predictor(model)
    merging = Segment().joined(predictor).model
    assert merging.config.backbone == "merging"
    assert merging.backbone.counts(100) == [100, 50, 50]
    images = [scene(seed=seed) for seed in range(2)]
    joined, every = spit.segment(model, images), spit.segment(model, images, merge=False)
    prediction = predictor(images, crop=False)
    assert torch.equal(joined.values, prediction.segment().values)
    assert torch.equal(joined.values, Predictor(merging)(images, crop=False).segment(merge=False).values)
    assert torch.equal(every.values, prediction.segment(merge=False).values)
    assert Segment().joined(prediction) is Segment().joined(prediction)  # one pass, for whatever is asked of it
    assert not torch.equal(joined.values, every.values)
    assert Segment(cut_on="keys").joined(predictor) is predictor
    assert Segment().joined(Predictor(merging)).model is merging


def test_no_images_are_refused(model: SpitModel) -> None:
    with pytest.raises(ValueError, match="at least one image"):
        Segment().ask(Predictor(model), [])


def test_sizes_differ(model: SpitModel, scene: Scene) -> None:
    found = spit.segment(model, [scene(20, 30), scene(31, 17)])
    assert [tuple(mask.shape) for mask in found.mask] == [(20, 30), (31, 17)]
    small = spit.segment(model, [scene(20, 30), scene(31, 17)], size=12)
    assert [tuple(mask.shape) for mask in small.saliency] == [(20, 30), (31, 17)]


def test_nothing_to_cut_is_no_foreground(model: SpitModel) -> None:
    for image in (torch.full((3, 24, 24), 90, dtype=torch.uint8), torch.zeros(3, 1, 1)):
        found = spit.segment(model, image)
        assert not found.mask.any()
        assert (found.saliency == 0.5).all()


def test_every_tokenizer(model: SpitModel, scene: Scene) -> None:
    for name, options in (("patch", {"size": 8}), ("voronoi", {"cells": 20}), ("superpixel", {"levels": 3})):
        assert spit.segment(model.with_tokenizer(name, **options), scene()).mask.shape == (1, 40, 48)


def test_floats_and_bytes_agree(model: SpitModel, scene: Scene) -> None:
    image = scene()
    assert torch.equal(spit.segment(model, image).mask, spit.segment(model, image / 255).mask)


def test_refusals(model: SpitModel, scene: Scene) -> None:
    with pytest.raises(TypeError, match="a model of spit"):
        spit.segment(torch.nn.Linear(3, 3), scene())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="from -3 to 2, got 5"):
        spit.segment(model, scene(), layer=5)
    with pytest.raises(ValueError, match="3 channels"):
        spit.segment(model, torch.zeros(1, 8, 8))
    with pytest.raises(ValueError, match="cut_on to be one of tokens, keys, got 'values'"):
        spit.segment(model, scene(), cut_on="values")
    training = model.with_tokenizer("patch").train()
    with pytest.raises(ValueError, match=r"model\.eval\(\)"):
        spit.segment(training, scene())


class Brightest:
    """Its class token is (brightest pixel, 1)."""

    def embed(self, images: list[Tensor]) -> Tensor:
        brightest = torch.stack([image.amax() for image in images])
        return torch.stack([brightest, torch.ones_like(brightest)], dim=1)


def seen(inside: float, outside: float) -> Any:
    """What ``orient`` reads of a ForwardPass."""
    image = torch.where(LABELS == 1, inside, outside).float().expand(3, -1, -1)
    tokens = Tokens(torch.zeros(2, 1), torch.tensor([0, 2]))
    whole = Brightest().embed([image])
    partition = Partition.of(LABELS[None], torch.tensor([2]))
    return SimpleNamespace(model=Brightest(), images=(image,), tokens=tokens, class_token=whole,
                           paint=lambda values: list(partition.paint(values)))


def test_the_largest_entry_stays_positive() -> None:
    values = torch.tensor([1.0, -1.0])
    assert orient(seen(1, 0), values, "largest") is values


def test_the_side_with_the_border_is_background() -> None:
    for values in (torch.tensor([1.0, -1.0]), torch.tensor([-1.0, 1.0])):
        assert orient(seen(1, 0), values, "border").tolist() == [-1, 1]


def test_class_tokens() -> None:
    """The brightest pixel survives on its own side alone; the other side's is at most the mean's."""
    for values in (torch.tensor([1.0, -1.0]), torch.tensor([-1.0, 1.0])):
        assert orient(seen(0.9, 0.1), values, "class_token").tolist() == [-1, 1]
        assert orient(seen(0.1, 0.9), values, "class_token").tolist() == [1, -1]


def test_a_side_that_is_empty_leaves_things_as_they_are() -> None:
    values = torch.zeros(2)
    assert orient(seen(1, 0), values, "class_token").tolist() == [0, 0]
