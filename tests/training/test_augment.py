import math
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from spit.training.augment import OPERATIONS, AugmentConfig, Draw, apply, draw

PLAIN = AugmentConfig(scale=(1.0, 1.0), ratio=(1.0, 1.0), flip=0.0, policies=("none",), cutmix=0.0)
GREY = 128  # beyond the image


def drawn(config: AugmentConfig, count: int, seed: int = 0) -> Draw:
    return draw(config, count, torch.Generator().manual_seed(seed))


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def equal(one: Draw, other: Draw) -> bool:
    return all(torch.equal(getattr(one, item.name), getattr(other, item.name)) for item in fields(Draw))


def test_draws_are_the_generators_alone() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = drawn(AugmentConfig(), 8)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert equal(drawn(AugmentConfig(), 8), first)
    assert not equal(drawn(AugmentConfig(), 8, seed=1), first)


def test_what_is_drawn() -> None:
    config = AugmentConfig(scale=(0.2, 0.6), ratio=(0.5, 2.0), flip=0.25, layers=3, magnitude=15.0, jitter=0.2)
    d = drawn(config, 4000)
    assert len(d) == 4000
    assert 0.2 <= d.area.min() < 0.21
    assert 0.59 < d.area.max() <= 0.6
    assert 0.5 <= d.ratio.min() < d.ratio.max() <= 2
    assert d.ratio.log().mean() == pytest.approx(0, abs=0.02)  # as often wide as high
    assert d.mirrored.float().mean() == pytest.approx(0.25, abs=0.03)
    assert d.bicubic.float().mean() == pytest.approx(0.5, abs=0.03)
    rand = d.three < 0
    assert rand.float().mean() == pytest.approx(0.5, abs=0.03)  # one of two policies each
    assert d.operation.shape == d.strength.shape == (4000, 3)
    assert (d.operation[~rand] == -1).all()
    assert set(d.operation[rand].flatten().tolist()) == set(range(len(OPERATIONS)))
    assert set(d.strength.flatten().tolist()) == {-0.5, 0.5}
    assert set(d.three[~rand].tolist()) == {0, 1, 2}
    assert (d.jitter[rand] == 1).all()
    assert 0.8 <= d.jitter.min() < 0.81
    assert 1.19 < d.jitter.max() <= 1.2


@given(seed=st.integers(0, 99), cut=st.tuples(st.integers(0, 3), st.integers(0, 3)))
@settings(max_examples=20, deadline=None)
def test_a_part_is_the_part_of_the_whole(seed: int, cut: tuple[int, int]) -> None:
    rows = slice(2 * min(cut), 2 * max(cut) + 2)
    images, aspects, labels = noise(8, 3, 20, 20, seed=seed), torch.linspace(0.5, 2, 8), torch.arange(8)
    before = images.clone()
    d = drawn(AugmentConfig(magnitude=20.0), 8, seed)
    whole, part = apply(images, aspects, d, 16), apply(images[rows], aspects[rows], d[rows], 16)
    assert (whole.dtype, whole.shape) == (torch.uint8, (8, 3, 16, 16))
    assert torch.equal(part, whole[rows])
    assert torch.equal(d[rows].mix(part), d.mix(whole)[rows])
    assert torch.equal(d[rows].targets(labels[rows], 8, 0.1), d.targets(labels, 8, 0.1)[rows])
    assert torch.equal(images, before)


@pytest.mark.parametrize("size", [24, 32, 60, 20])
def test_the_whole_image_is_a_plain_resize(size: int) -> None:
    images, d = noise(6, 3, 24, 24), drawn(PLAIN, 6)
    answer = apply(images, torch.ones(6), d, size)
    assert d.bicubic.unique().tolist() == [False, True]
    for mode, rows in (("bilinear", ~d.bicubic), ("bicubic", d.bicubic)):
        plain = F.interpolate(images[rows].float(), size, mode=mode, align_corners=False).clamp(0, 255)
        assert (answer[rows] - plain).abs().max() <= 0.51


def test_flip() -> None:
    images, d = noise(6, 3, 24, 24), drawn(replace(PLAIN, flip=0.5), 6)
    assert d.mirrored.unique().tolist() == [False, True]
    answer = apply(images, torch.ones(6), d, 24)
    assert torch.equal(answer[d.mirrored], images[d.mirrored].flip(-1))
    assert torch.equal(answer[~d.mirrored], images[~d.mirrored])


@given(aspect=st.floats(0.15, 7), low=st.floats(0.05, 1), ratio=st.floats(0.3, 3), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_crops_by_plain_computation(aspect: float, low: float, ratio: float, seed: int) -> None:
    """Where a crop lies is read off an image whose colours are its coordinates."""
    config = replace(PLAIN, scale=(low, 1.0), ratio=(ratio, 1.2 * ratio))
    d = drawn(config, 1, seed)
    y, x = torch.meshgrid(torch.arange(256), torch.arange(256), indexing="ij")
    answer = apply(torch.stack([x, y])[None].to(torch.uint8), torch.tensor([aspect]), d, 16)[0].float()
    width, height = 1000 * aspect, 1000.0  # of the photo
    tries = [(math.sqrt(area * width * height * sides), math.sqrt(area * width * height / sides))
             for area, sides in zip(d.area[0].tolist(), d.ratio[0].tolist(), strict=True)]
    inside = [sides for sides in tries if sides[0] <= width and sides[1] <= height]
    shrink = min(1, width / tries[0][0], height / tries[0][1])
    wide, high = inside[0] if inside else (tries[0][0] * shrink, tries[0][1] * shrink)
    for values, part, place in ((answer[0, 0], wide / width, d.place[0, 0]),
                                (answer[1, :, 0], high / height, d.place[0, 1])):
        start = float(place) * (1 - part)
        centres = start + part * (torch.arange(16) + 0.5) / 16
        assert (values - (256 * centres - 0.5)).abs().max() < 0.6


def test_squashed_circles_come_out_round() -> None:
    y, x = torch.meshgrid(torch.arange(128) + 0.5, torch.arange(128) + 0.5, indexing="ij")
    circle = (y / 128 - 0.5) ** 2 + (2 * (x / 128 - 0.5)) ** 2 < 0.3**2  # in a photo twice as wide as high
    d = drawn(replace(PLAIN, scale=(0.5, 0.5)), 4)
    d = replace(d, place=torch.full((4, 2), 0.5))
    answer = apply(255 * circle.to(torch.uint8).expand(4, 1, -1, -1), torch.full((4,), 2.0), d, 100)[:, 0] > 127
    for spans in (answer.any(1).sum(1), answer.any(2).sum(1)):
        assert (spans - 60).abs().max() <= 1


def one_operation(*names: str, strengths: tuple[float, ...]) -> Draw:
    d = drawn(PLAIN, 1)
    return replace(d, operation=torch.tensor([[OPERATIONS.index(name) for name in names]]),
                   strength=torch.tensor([strengths]), bicubic=torch.tensor([False]))


@pytest.mark.parametrize(("name", "axis"), [("translate_x", -1), ("translate_y", -2)])
def test_translation(name: str, axis: int) -> None:
    image = noise(1, 3, 40, 40)
    answer = apply(image, torch.ones(1), one_operation(name, strengths=(0.5,)), 40)  # by half of 0.45 · 40
    assert torch.equal(answer.narrow(axis, 0, 31), image.narrow(axis, 9, 31))
    assert (answer.narrow(axis, 31, 9) == GREY).all()
    answer = apply(image, torch.ones(1), one_operation(name, strengths=(-0.5,)), 40)
    assert torch.equal(answer.narrow(axis, 9, 31), image.narrow(axis, 0, 31))


@pytest.mark.parametrize(("names", "strengths", "before", "after"), [
    (("rotate",), (1.0,), (-12, 0), (-10, -6)),  # (y, x) from the middle, by 30°
    (("rotate",), (-1.0,), (-12, 0), (-10, 6)),
    (("rotate",), (1.0,), (0, 12), (-6, 10)),
    (("shear_x",), (1.0,), (10, 0), (10, -3)),
    (("shear_x",), (-0.5,), (0, 7), (0, 7)),
    (("shear_y",), (1.0,), (0, 10), (-3, 10)),
    (("identity",), (1.0,), (3, 4), (3, 4)),
    (("shear_x", "translate_y"), (1.0, 10 / 0.45 / 41), (10, 0), (0, -3)),  # in this order
    (("translate_y", "shear_x"), (10 / 0.45 / 41, 1.0), (10, 0), (0, 0)),
])
def test_one_bright_pixel(names: tuple[str, ...], strengths: tuple[float, ...], before: tuple[int, int],
                          after: tuple[int, int]) -> None:
    image = torch.zeros(1, 1, 41, 41, dtype=torch.uint8)
    image[0, 0, 20 + before[0], 20 + before[1]] = 255
    answer = apply(image, torch.ones(1), one_operation(*names, strengths=strengths), 41)[0, 0].int()
    inside = torch.where(answer == GREY, 0, answer)
    place = divmod(int(inside.argmax()), 41)
    assert (place[0] - 20, place[1] - 20) == after
    assert inside.max() > (90 if "rotate" in names else 250)


def test_colors_of_the_images_that_drew_them() -> None:
    images = noise(4, 3, 8, 8)
    d = replace(drawn(PLAIN, 4), operation=torch.tensor([[-1], [OPERATIONS.index("solarize")], [-1], [-1]]),
                strength=torch.ones(4, 1), three=torch.tensor([-1, -1, 0, 1]))
    answer = apply(images, torch.ones(4), d, 8)
    assert torch.equal(answer[0], images[0])
    assert torch.equal(answer[1], 255 - images[1])
    assert (answer[2] == answer[2, :1]).all()
    assert torch.equal(answer[3], torch.where(images[3] >= 128, 255 - images[3], images[3]))
    brighter = apply(images, torch.ones(4), replace(d, jitter=torch.tensor([2.0, 1.0, 1.0]).expand(4, 3)), 8)
    assert torch.equal(brighter[:2], answer[:2])  # jitter is 3-Augment's
    assert torch.equal(brighter[3].int(), (2 * answer[3].int()).clamp_max(255))


def numbered(count: int, size: int) -> Tensor:
    """Images of one value, their number."""
    return torch.arange(count).to(torch.uint8).view(-1, 1, 1, 1).repeat(1, 1, size, size)


@pytest.mark.parametrize("size", [32, 96])
@pytest.mark.parametrize("count", [6, 7])
def test_cutmix_targets_are_shares_of_pixels(size: int, count: int) -> None:
    for seed in range(10):
        d = drawn(AugmentConfig(cutmix=1.0), count, seed)
        images = numbered(count, size)
        mixed, targets = d.mix(images), d.targets(torch.arange(count), count)
        shares = torch.stack([(mixed == number).float().mean((1, 2, 3)) for number in range(count)], 1)
        assert torch.allclose(targets, shares, atol=1e-6)
        others = (shares > 0) & ~torch.eye(count, dtype=torch.bool)
        assert others.any()
        assert all(column == row ^ 1 for row, column in others.nonzero().tolist())
        assert torch.equal(images, numbered(count, size))
        assert count == 6 or (mixed[6] == 6).all()


def test_cutmix_by_hand() -> None:
    d = replace(drawn(PLAIN, 3), box=torch.tensor([[0, 0.5, 0.5, 1]] * 2 + [[0, 0, 0, 0]]))
    mixed = d.mix(numbered(3, 4))[:, 0]
    assert mixed[0].tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert mixed[1].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    labels = torch.tensor([3, 1, 2])
    assert d.targets(labels, 4).tolist() == [[0, 0.25, 0, 0.75], [0, 0.75, 0, 0.25], [0, 0, 1, 0]]
    smooth = d.targets(labels, 4, smoothing=0.2)
    assert torch.allclose(smooth[2], torch.tensor([0.05, 0.05, 0.85, 0.05]))
    assert torch.allclose(smooth[0], torch.tensor([0.05, 0.25, 0.05, 0.65]))
    assert torch.allclose(smooth.sum(1), torch.ones(3))


def test_boxes() -> None:
    whole = drawn(AugmentConfig(cutmix=1e6), 2000).box  # λ = ½
    assert torch.equal(whole[::2], whole[1::2])
    assert ((whole * 32).frac() == 0).all()
    inside = whole[(whole[:, :2] > 0).all(1) & (whole[:, 2:] < 1).all(1)]
    sides = inside[:, 2:] - inside[:, :2]
    assert len(inside) > 50
    assert set((sides * 32).flatten().tolist()) == {22.0, 23.0}  # √½ · 32 = 22.6
    some = drawn(AugmentConfig(cutmix_share=0.25), 4000).box[::2]
    assert some.any(1).float().mean() == pytest.approx(0.25, abs=0.03)


def test_cutmix_of_one_policy() -> None:
    """The paper's words: RandAugment, or 3-Augment "including CutMix"."""
    every, some = (drawn(AugmentConfig(cutmix_policies=kinds), 400) for kinds in (("rand", "three"), ("three",)))
    three = some.three >= 0
    assert torch.equal(some.box[three], every.box[three])
    assert not some.box[~three].any()
    assert every.box[~three].any()
    assert equal(replace(some, box=every.box), every)  # nothing else is drawn in another way
    mixed, targets = some.mix(numbered(400, 32)), some.targets(torch.arange(400), 400)  # an image alone may be mixed
    assert (mixed[~three].flatten(1).float() == torch.arange(400)[~three, None] % 256).all()
    assert torch.equal(targets[~three], torch.eye(400)[~three])
    shares = (mixed == numbered(400, 32)).float().mean((1, 2, 3))
    assert torch.allclose(targets.diag(), shares, atol=1e-6)


@pytest.mark.parametrize("changes", [{"cutmix": 0.0}, {"cutmix_share": 0.0}, {"cutmix_policies": ()}])
def test_no_cutmix(changes: dict[str, Any]) -> None:
    images = numbered(4, 32)
    assert drawn(AugmentConfig(**changes), 4).mix(images) is images


@pytest.mark.parametrize(("changes", "words"), [
    ({"ratio": (2.0, 1.0)}, r"expected ratio as two rising numbers, got \(2.0, 1.0\)"),
    ({"policies": ()}, "expected at least one policy, got none"),
])
def test_wrong_configs(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AugmentConfig(**changes)
