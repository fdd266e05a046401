"""Both backends give the same hierarchy, bit for bit, whatever the rules and however many ties."""

from collections.abc import Callable
from math import inf

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from spit.kernels import SCALE, Levels, Rules, cpu, reference
from spit.tokenizers.preprocess import superpixel_features

Texture = Callable[[int, tuple[int, ...], int, int], Tensor]

unit = st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 0.9, 1.0]) | st.floats(0, 1)
rules_of = st.builds(
    Rules,
    levels=st.integers(1, 5),
    similarity=st.sampled_from(["cosine", "euclidean", "variance"]),
    loop_mean=st.sampled_from([1.0, 2.0]) | st.floats(0, 3),
    loop_clip=st.sampled_from([None, 0.0, 0.75, inf]) | st.floats(0, 4),
    compactness=unit,
    merge_threshold=st.sampled_from([0.0, 0.05, 0.2, 1.0, 10.0]) | st.floats(0, 2),
    max_tokens=st.none() | st.integers(1, 40),
)
sides = st.sampled_from([1, 2, 3, 4, 7, 11, 16])
shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), sides, sides)


def assert_same(got: Levels, expected: Levels) -> None:
    assert len(got) == len(expected)
    for t, ((parents, counts), (right_parents, right_counts)) in enumerate(zip(got, expected, strict=True)):
        assert parents.dtype == right_parents.dtype == torch.int32
        assert counts.dtype == right_counts.dtype == torch.int64
        assert torch.equal(counts, right_counts), f"level {t}: {counts.tolist()} and {right_counts.tolist()}"
        assert torch.equal(parents, right_parents), f"level {t}"


@settings(deadline=None, max_examples=500)
@given(seed=st.integers(0, 100_000), shape=shapes, rules=rules_of, low=st.sampled_from([-SCALE, 0, -3, SCALE - 1]))
@example(seed=0, shape=(1, 1, 1, 1), rules=Rules(merge_threshold=0.1, max_tokens=1), low=-SCALE)
@example(seed=10, shape=(1, 3, 1, 16), rules=Rules(compactness=1.0, max_tokens=1), low=-SCALE)
@example(seed=10, shape=(1, 3, 16, 1), rules=Rules(levels=5, loop_clip=inf), low=-SCALE)
def test_parity(texture: Texture, seed: int, shape: tuple[int, ...], rules: Rules, low: int) -> None:
    features = texture(seed, shape, low, SCALE if low < SCALE - 2 else low + 1).to(torch.int16)
    before = features.clone()
    assert_same(cpu.superpixels(features, rules), reference.superpixels(features, rules))
    assert torch.equal(features, before)


@pytest.mark.parametrize("rules", [
    Rules(),
    Rules(loop_clip=inf, compactness=0.1),
    Rules(loop_mean=2.0, merge_threshold=0.05),
    Rules(loop_clip=None, similarity="euclidean", compactness=0.5, max_tokens=9),
    Rules(max_tokens=20, merge_threshold=0.01, levels=2),
    Rules(loop_clip=None, similarity="variance", levels=2, max_tokens=40),
])
def test_parity_on_photographs(photo: Callable[[str, int], Tensor], rules: Rules) -> None:
    images = torch.stack([photo("astronaut", 96), photo("chelsea", 96)])[:, :, :70]
    for kind in ("paper", "published", "saturated"):
        features = superpixel_features(images, kind)
        assert_same(cpu.superpixels(features, rules), reference.superpixels(features, rules))


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 100_000), shape=shapes, rules=rules_of)
def test_levels_fit_into_each_other(texture: Texture, seed: int, shape: tuple[int, ...], rules: Rules) -> None:
    batch, _, height, width = shape
    levels = cpu.superpixels(texture(seed, shape, -SCALE, SCALE).to(torch.int16), rules)
    assert len(levels) == rules.levels + (rules.merge_threshold > 0) + (rules.max_tokens is not None)
    regions = torch.full((batch,), height * width)
    for parents, counts in levels:
        assert len(parents) == regions.sum()
        for own, count in zip(parents.split(regions.tolist()), counts.tolist(), strict=True):
            assert own.unique().tolist() == list(range(count))  # every number is used
        regions = counts


@pytest.mark.parametrize("backend", [reference, cpu])
@pytest.mark.parametrize("layout", ["channels_last", "slice", "expand", "transpose"])
def test_any_layout(backend: object, layout: str) -> None:
    base = torch.randint(-SCALE, SCALE, (2, 3, 12, 10), dtype=torch.int16, generator=torch.Generator().manual_seed(0))
    strided = {
        "channels_last": lambda: base.to(memory_format=torch.channels_last),
        "slice": lambda: base[:, 1:, ::2, 1::3],
        "expand": lambda: base[:1].expand(2, -1, -1, -1),
        "transpose": lambda: base.mT,
    }[layout]()
    rules = Rules(levels=2, compactness=0.1)
    assert_same(backend.superpixels(strided, rules), backend.superpixels(strided.clone().contiguous(), rules))


@pytest.mark.usefixtures("torch_threads")
def test_threads_change_nothing(texture: Texture) -> None:
    features = texture(10, (5, 3, 9, 13), -SCALE, SCALE).to(torch.int16)
    rules = Rules(levels=3, max_tokens=4)
    assert_same(cpu.superpixels(features, rules), reference.superpixels(features, rules))
