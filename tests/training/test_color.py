from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from spit.training.color import COLOR, THREE, change_colors, jitter_colors, luma

ALL = (*COLOR, *THREE)
SOFT = ("identity", "solarize", "posterize", "saturation", "contrast", "brightness", "sharpness")


def levels(seed: int, *shape: int) -> Tensor:
    """8-bit images as floats."""
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(seed)) / 255


def one(name: str, image: Tensor, strength: float = 1.0) -> Tensor:
    return change_colors(name, image[None], torch.tensor([strength]))[0]


def row(*values: float) -> Tensor:
    """An image of one row, its values of 255."""
    return torch.tensor(values).view(1, 1, -1) / 255


def by_pillow(image: Tensor, operation: Callable[[Image.Image], Image.Image]) -> Tensor:
    picture = Image.fromarray((image * 255).round().to(torch.uint8).permute(1, 2, 0).numpy())
    return torch.from_numpy(np.array(operation(picture))).permute(2, 0, 1)


@pytest.mark.parametrize(("name", "strength", "operation", "tolerance"), [
    ("autocontrast", 1.0, ImageOps.autocontrast, 1),  # Pillow cuts fractions off
    ("equalize", 1.0, ImageOps.equalize, 1),  # Pillow counts in whole steps
    ("solarize", 0.25, lambda image: ImageOps.solarize(image, 192), 0),
    ("solarize", -1.0, lambda image: ImageOps.solarize(image, 0), 0),
    ("solarization", 0.1, lambda image: ImageOps.solarize(image, 128), 0),
    ("posterize", 0.25, lambda image: ImageOps.posterize(image, 7), 0),
    ("posterize", -1.0, lambda image: ImageOps.posterize(image, 4), 0),
    ("grayscale", 1.0, lambda image: ImageOps.grayscale(image).convert("RGB"), 1),
    ("saturation", 1.0, lambda image: ImageEnhance.Color(image).enhance(1.9), 1),
    ("saturation", -1.0, lambda image: ImageEnhance.Color(image).enhance(0.1), 1),
    ("contrast", 0.5, lambda image: ImageEnhance.Contrast(image).enhance(1.45), 1),
    ("brightness", -0.5, lambda image: ImageEnhance.Brightness(image).enhance(0.55), 1),
    ("brightness", 0.5, lambda image: ImageEnhance.Brightness(image).enhance(1.45), 1),
])
def test_as_pillow_has_it(name: str, strength: float, operation: Callable[[Image.Image], Image.Image],
                          tolerance: int, photo: Callable[[str, int], Tensor]) -> None:
    image = (photo("coffee", 256).float() * 0.7 + 30).round() / 255  # neither end of the scale is used
    ours = (one(name, image, strength) * 255).round()
    assert (ours - by_pillow(image, operation)).abs().max() <= tolerance
    assert name == "posterize" or (ours - image * 255).abs().max() > 20


def test_by_hand() -> None:
    assert torch.allclose(one("autocontrast", row(50, 101, 152)), row(0, 127.5, 255))
    assert torch.allclose(one("equalize", row(10, 10, 20, 30)), row(0, 0, 170, 255))
    assert torch.allclose(one("solarize", row(0, 127, 128, 255), 0.5), row(0, 127, 127, 0))
    assert torch.allclose(one("posterize", row(15, 15.999, 31, 255)), row(0, 16, 16, 240))
    assert torch.allclose(one("brightness", row(100, 200)), row(190, 255))
    assert torch.allclose(one("contrast", row(100, 200), -1.0), row(145, 155))
    red = torch.tensor([1.0, 0, 0]).view(3, 1, 1)
    assert torch.allclose(one("grayscale", red), torch.full((3, 1, 1), 0.299))
    assert torch.allclose(one("saturation", red, -1.0), 0.1 * red + 0.9 * 0.299)


def test_blur_is_binomial() -> None:
    point = torch.zeros(1, 7, 7)
    point[0, 3, 3] = 1
    weights = torch.tensor([0, 1, 4, 6, 4, 1, 0]) / 16
    assert torch.allclose(one("blur", point)[0], weights[:, None] * weights)
    assert torch.allclose(one("sharpness", point, -1.0)[0], 0.1 * point[0] + 0.9 * weights[:, None] * weights)
    corner = torch.zeros(1, 4, 4)
    corner[0, 0, 0] = 1  # and again and again beyond the edge
    assert one("blur", corner)[0, 0, 0] == pytest.approx((11 / 16) ** 2)


@pytest.mark.parametrize("name", SOFT)
def test_strength_0_changes_nothing(name: str) -> None:
    every = (torch.arange(256) / 255).view(1, 16, 16).repeat(3, 1, 1)
    assert torch.allclose(one(name, every, 0.0), every, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("value", [0.0, 0.7, 1.0])
def test_one_color(name: str, value: float) -> None:
    """Nothing to stretch or spread, rounding by interpolation aside."""
    flat = torch.full((3, 8, 8), value)
    flat[:, ::2] = (flat[:, ::2] - 1e-6).clamp(0, 1)
    wanted = {"solarize": 1 - flat, "solarization": torch.where(flat >= 0.5, 1 - flat, flat),
              "posterize": (flat * 255).round() // 16 * 16 / 255, "brightness": (1.9 * flat).clamp(0, 1)}
    assert torch.allclose(one(name, flat), wanted.get(name, flat), atol=1e-5)


@given(seed=st.integers(0, 999), name=st.sampled_from(ALL), channels=st.sampled_from([1, 3]),
       strengths=st.lists(st.floats(-1, 1), min_size=3, max_size=3))
@settings(max_examples=60, deadline=None)
def test_each_image_by_itself(seed: int, name: str, channels: int, strengths: list[float]) -> None:
    images = levels(seed, 3, channels, 5, 6)
    before = images.clone()
    answer = change_colors(name, images, torch.tensor(strengths))
    assert answer.shape == images.shape
    assert 0 <= answer.min() <= answer.max() <= 1
    assert torch.equal(images, before)
    for index, strength in enumerate(strengths):
        assert torch.allclose(answer[index], one(name, images[index], strength), atol=1e-6)
    if name in ("solarize", "posterize"):  # no direction
        assert torch.equal(answer, change_colors(name, images, -torch.tensor(strengths)))


def test_jitter() -> None:
    images = levels(0, 2, 3, 4, 4)
    assert torch.allclose(jitter_colors(images, torch.ones(2, 3)), images, atol=1e-6)
    answer = jitter_colors(images, torch.tensor([[0.5, 1.0, 1.0], [1.0, 1.0, 0.0]]))
    assert torch.allclose(answer[0], images[0] / 2, atol=1e-6)
    assert torch.allclose(answer[1], luma(images)[1].expand(3, 4, 4), atol=1e-6)
    grey = jitter_colors(row(100, 200).expand(3, 1, 2)[None], torch.tensor([[1.2, 0.5, 1.3]]))
    assert torch.allclose(grey[0], row(150, 210).expand(3, 1, 2))  # 120 and 240, then towards 180
