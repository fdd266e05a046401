"""Contraction, rounds, refinement and ``spit.superpixels`` against ``plain_superpixels``, which is independent of spit.

Every label must be equal on every backend, numbers included, where weights tie and where they nearly tie.
"""

from dataclasses import asdict
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paper import plain_superpixels as plain
from spit import SuperpixelTokenizer, kernels
from spit.kernels import SCALE, Rules
from spit.tokens import offsets_of

Image = npt.NDArray[np.uint8]
BACKENDS = pytest.mark.parametrize("name", ["reference", "numba"])
SEEDS = st.integers(0, 100_000)
SIDES = st.integers(1, 9) | st.sampled_from([1, 16])


def draw(seed: int, height: int, width: int, channels: int) -> Image:
    """An image of one of nine kinds, most with ties everywhere."""
    rng = np.random.default_rng(seed)
    shape = (height, width, channels)
    y, x = np.mgrid[:height, :width, :1][:2]
    two = rng.integers(0, 256, (2, channels))
    kinds = [
        lambda: rng.integers(0, 256, shape),  # noise
        lambda: np.broadcast_to(two[0], shape),  # flat
        lambda: np.where((y + x) % 2 == 0, *two),  # checkerboard
        lambda: np.where((y // 2 + x // 3) % 2 == 0, *two),
        lambda: np.where(x % 3 == 0, *two),  # stripes
        lambda: rng.choice(two[:, 0], shape),  # two values
        lambda: 255 * (y + x) // (height + width) + 0 * two[0],  # gradient
        lambda: np.clip(two[0] + rng.integers(-1, 2, shape), 0, 255),  # nearly flat
        lambda: np.where((y == height // 2) & (x == width // 2), *two),  # an outlier
    ]
    return np.array(kinds[seed % len(kinds)](), np.uint8)


def planes(image: Image) -> Tensor:
    return torch.from_numpy(np.moveaxis(image, -1, 0).copy())


IMAGES = st.builds(draw, SEEDS, SIDES, SIDES, st.sampled_from([1, 2, 3, 4]))


# --- the oracle itself ----------------------------------------------------------------------------


def squared_error(features: plain.Colors, region: plain.Region) -> Fraction:
    error = Fraction(0)
    for values in zip(*(features[pixel] for pixel in region), strict=True):
        mean = Fraction(sum(values), len(values))
        error += sum((value - mean) ** 2 for value in values)
    return error / SCALE**2


@given(image=IMAGES, count=st.integers(2, 9))
@settings(max_examples=30)
def test_the_variance_weight_is_the_growth_of_the_squared_error(image: Image, count: int) -> None:
    features = plain.pixel_values(planes(image).int() * 16 - SCALE)
    regions = plain.rounds(features, [[pixel] for pixel in features], count, "variance")
    for (u, v), weight in plain.pair_weights(features, regions, "variance", 0.0).items():
        growth = squared_error(features, regions[u] + regions[v]) - sum(
            squared_error(features, regions[end]) for end in (u, v))
        assert float(-weight) == pytest.approx(float(growth), rel=1e-4, abs=1e-9)


# --- operations -----------------------------------------------------------------------------------

RULES = st.builds(
    Rules, levels=st.integers(1, 4), similarity=st.sampled_from(["variance", "cosine", "euclidean"]),
    loop_clip=st.sampled_from([None, 0.0, 0.75, inf]) | st.floats(0, 4),
    compactness=st.sampled_from([0.0, 0.1, 0.5, 0.8, 1.0]) | st.floats(0, 1),
    merge_threshold=st.sampled_from([0.0, 0.05, 0.3, 1.0]) | st.floats(0, 2),
    max_tokens=st.none() | st.integers(1, 40))


@BACKENDS
@settings(max_examples=150)
@given(image=IMAGES, rules=RULES)
def test_every_level(name: str, image: Image, rules: Rules) -> None:
    features = (planes(image).to(torch.int16) - 128) * (SCALE // 128)
    expected = plain.contract(plain.pixel_values(features), **asdict(rules))
    before = features.clone()
    with kernels.backend(name):
        levels = kernels.superpixels(features[None], rules)
    assert torch.equal(features, before)
    labels = torch.arange(features[0].numel())
    for (parents, counts), regions in zip(levels, expected[1:], strict=True):
        labels = parents[labels]
        assert labels.view(features[0].shape).tolist() == plain.labels_of(regions)
        assert counts.tolist() == [len(regions)]


@BACKENDS
@pytest.mark.parametrize("seed", [7, 27, 43])
def test_the_order_of_products_decides_between_near_ties(name: str, seed: int) -> None:
    """Here (a b) / (a + b) and a (b / (a + b)) round to different choices."""
    features = np.random.default_rng(seed).choice([-SCALE, SCALE, 0], (1, 16, 16)).astype(np.int16)
    rules = Rules(levels=1, similarity="variance", loop_clip=None, max_tokens=8)
    with kernels.backend(name):
        labels, _ = kernels.superpixel_labels(torch.from_numpy(features)[None], rules)
    expected = plain.contract(plain.pixel_values(features), levels=1, similarity="variance", loop_clip=None)[-1]
    assert labels[0].tolist() == plain.labels_of(plain.rounds(plain.pixel_values(features), expected, 8, "variance"))


@BACKENDS
@settings(max_examples=80)
@given(image=IMAGES, level=st.integers(0, 2), capped=st.booleans(), data=st.data())
def test_between_two_levels(name: str, image: Image, level: int, capped: bool, data: Any) -> None:
    features = (planes(image).to(torch.int16) - 128) * (SCALE // 128)
    colors = plain.pixel_values(features)
    hierarchy = plain.contract(colors, levels=level + 1, similarity="cosine", loop_clip=None)
    below, above = hierarchy[level], hierarchy[level + 1] if capped else None
    count = data.draw(st.integers(len(above) if above else 1, len(below)))
    with kernels.backend(name):
        got = kernels.between(features, torch.tensor(plain.labels_of(below), dtype=torch.int32),
                              torch.tensor(plain.labels_of(above), dtype=torch.int32) if above else None, count)
    assert got.tolist() == plain.labels_of(plain.rounds(colors, below, count, "variance", ceiling=above))


@BACKENDS
@settings(max_examples=80)
@given(image=IMAGES, count=st.integers(1, 30), sweeps=st.integers(0, 4))
def test_refinement(name: str, image: Image, count: int, sweeps: int) -> None:
    colors = plain.pixel_values(planes(image))
    regions = plain.rounds(colors, [[pixel] for pixel in colors], min(count, len(colors)), "variance", 1.0)
    labels = torch.tensor([plain.labels_of(regions)], dtype=torch.int32)
    before = labels.clone()
    with kernels.backend(name):
        got = kernels.refine(labels, offsets_of(torch.tensor([len(regions)])), planes(image)[None], sweeps)
    assert torch.equal(labels, before)
    assert got[0].tolist() == plain.labels_of(plain.refined(colors, regions, sweeps))


@BACKENDS
@settings(max_examples=120)
@given(image=IMAGES, count=st.integers(1, 30), sweeps=st.integers(0, 4), least=st.integers(1, 12),
       gone=st.floats(0, 0.9))
def test_refinement_keeps_a_least_size_and_a_mask(name: str, image: Image, count: int, sweeps: int, least: int,
                                                  gone: float) -> None:
    pixels = planes(image).short() * 16 - 2048
    colors = plain.pixel_values(pixels)
    regions = plain.rounds(colors, [[pixel] for pixel in colors], min(count, len(colors)), "variance", 1.0)
    regions = [region for v, region in enumerate(regions) if v == 0 or v * 0.618 % 1 >= gone]  # the rest is nobody's
    colors = {pixel: colors[pixel] for region in regions for pixel in region}

    def painted(regions: list[plain.Region]) -> Tensor:
        labels = torch.full(image.shape[:2], -1, dtype=torch.int32)
        for pixel, v in plain.numbers(regions).items():
            labels[pixel] = v
        return labels

    with kernels.backend(name):
        got = kernels.refine(painted(regions)[None], torch.tensor([0, len(regions)]), pixels[None], sweeps, least,
                             masked=True)
    assert torch.equal(got[0], painted(plain.refined(colors, regions, sweeps, least)))
    sizes = torch.bincount(got[got >= 0], minlength=len(regions)).tolist()
    assert all(size >= min(least, len(region)) for size, region in zip(sizes, regions, strict=True))


# --- what users call ------------------------------------------------------------------------------


@BACKENDS
@settings(max_examples=40)
@given(seed=SEEDS, height=SIDES, width=SIDES, limit=st.integers(1, 60), refine=st.integers(0, 2),
       saturated=st.booleans())
def test_the_tokenizer_on_a_batch(name: str, seed: int, height: int, width: int, limit: int, refine: int,
                                  saturated: bool) -> None:
    batch = [draw(seed + image, height, width, 3) for image in range(2)]
    tokenizer = SuperpixelTokenizer(levels=2, similarity="variance", self_loop="none", max_tokens=limit, refine=refine,
                                    features="saturated" if saturated else "paper")
    with kernels.backend(name):
        part = tokenizer(torch.stack([planes(image) for image in batch]))
    for labels, image in zip(part.blocks[0], batch, strict=True):
        features = plain.pixel_values(plain.superpixel_features(planes(image).tolist(), saturated))
        regions = plain.contract(features, levels=2, similarity="variance", loop_clip=None, max_tokens=limit)[-1]
        assert labels.tolist() == plain.labels_of(plain.refined(plain.pixel_values(planes(image)), regions, refine))
