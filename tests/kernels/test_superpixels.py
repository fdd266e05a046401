"""All backends give the same hierarchy, bit for bit, whatever the rules and however many ties."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernels.parity import assert_same
from spit.kernels import SCALE, Rules, reference
from spit.kernels import tensors as numba
from spit.tokenizers.preprocess import superpixel_features

Texture = Callable[[int, tuple[int, ...], int, int], Tensor]
Draw = Callable[..., Tensor]
FEW = pytest.mark.usefixtures("few_programs")
ALL = Rules(levels=3, compactness=0.3, merge_threshold=0.3, max_tokens=3)

unit = st.sampled_from([0.0, 0.1, 1 / 3, 0.5, 0.9, 1.0]) | st.floats(0, 1)
rules_of = st.builds(
    Rules,
    levels=st.integers(1, 5),
    similarity=st.sampled_from(["cosine", "euclidean", "variance"]),
    loop_clip=st.sampled_from([None, 0.0, 0.75, inf]) | st.floats(0, 4),
    compactness=unit,
    merge_threshold=st.sampled_from([0.0, 0.05, 0.2, 1.0, 10.0]) | st.floats(0, 2),
    max_tokens=st.none() | st.integers(1, 40),
)
sides = st.sampled_from([1, 2, 3, 4, 7, 11, 16])
shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), sides, sides)


@pytest.mark.parametrize("rules", [
    Rules(),
    Rules(loop_clip=inf, compactness=0.1),
    Rules(merge_threshold=0.05),
    Rules(loop_clip=None, similarity="euclidean", compactness=0.5, max_tokens=9),
    Rules(max_tokens=20, merge_threshold=0.01, levels=2),
    Rules(loop_clip=None, similarity="variance", levels=2, max_tokens=40),
])
def test_parity_on_photographs(photo: Callable[[str, int], Tensor], rules: Rules) -> None:
    images = torch.stack([photo("astronaut", 96), photo("chelsea", 96)])[:, :, :70]
    for kind in ("paper", "saturated"):
        features = superpixel_features(images, kind)
        assert_same(numba.superpixels(features, rules), reference.superpixels(features, rules))


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 100_000), shape=shapes, rules=rules_of)
def test_levels_fit_into_each_other(texture: Texture, seed: int, shape: tuple[int, ...], rules: Rules) -> None:
    batch, _, height, width = shape
    levels = numba.superpixels(texture(seed, shape, -SCALE, SCALE).to(torch.int16), rules)
    assert len(levels) == rules.levels + (rules.merge_threshold > 0) + (rules.max_tokens is not None)
    regions = torch.full((batch,), height * width)
    for parents, counts in levels:
        assert len(parents) == regions.sum()
        for own, count in zip(parents.split(regions.tolist()), counts.tolist(), strict=True):
            assert own.unique().tolist() == list(range(count))  # every number is used
        regions = counts


@pytest.mark.parametrize("layout", ["channels_last", "slice", "expand", "transpose"])
def test_any_layout(backend: Any, layout: str) -> None:
    base = torch.randint(-SCALE, SCALE, (2, 3, 12, 10), dtype=torch.int16, generator=torch.Generator().manual_seed(0))
    strided = {
        "channels_last": lambda: base.to(memory_format=torch.channels_last),
        "slice": lambda: base[:, 1:, ::2, 1::3],
        "expand": lambda: base[:1].expand(2, -1, -1, -1),
        "transpose": lambda: base.mT,
    }[layout]()
    rules = Rules(levels=2, compactness=0.1)
    assert_same(backend.superpixels(strided, rules), backend.superpixels(strided.clone().contiguous(), rules))


@pytest.mark.parametrize("rules", [Rules(levels=1), Rules(levels=3, compactness=0.2), ALL], ids=["1", "3", "all"])
def test_labels_are_the_last_level(compiled: Any, mixed: Draw, rules: Rules) -> None:
    features = mixed((3, 3, 7, 10), -SCALE, SCALE, first=8).to(torch.int16)
    labels, counts = compiled.superpixel_labels(features, rules)
    expected_labels, expected_counts = reference.superpixel_labels(features, rules)
    assert (labels.dtype, counts.dtype) == (torch.int32, torch.int64)
    assert torch.equal(labels, expected_labels)
    assert torch.equal(counts, expected_counts)


def test_an_image_is_alone_in_its_batch(backend: Any, mixed: Draw) -> None:
    features = mixed((3, 3, 8, 7), -SCALE, SCALE, first=8).to(torch.int16)
    labels, counts = backend.superpixel_labels(features, Rules(levels=3))
    order = [2, 0, 2]
    shuffled, shuffled_counts = backend.superpixel_labels(features[order], Rules(levels=3))
    assert torch.equal(shuffled, labels[order])
    assert torch.equal(shuffled_counts, counts[order])
    assert torch.equal(backend.superpixel_labels(features[1:2], Rules(levels=3))[0], labels[1:2])


@FEW
@pytest.mark.parametrize("rules", [
    Rules(levels=1),
    Rules(levels=2),
    Rules(levels=3),
    Rules(levels=6),
    Rules(similarity="euclidean"),
    Rules(similarity="variance", loop_clip=None, max_tokens=9),
    Rules(similarity="variance", compactness=0.2),
    Rules(loop_clip=None),
    Rules(loop_clip=inf),
    Rules(loop_clip=0.0),
    Rules(compactness=0.5),
    Rules(compactness=1.0, levels=3),
    Rules(levels=1, merge_threshold=0.2),
    Rules(levels=2, merge_threshold=1.0),
    Rules(merge_threshold=0.2),
    Rules(levels=1, max_tokens=7),
    Rules(levels=2, max_tokens=1000),
    Rules(levels=3, max_tokens=1),
    ALL,
    Rules(levels=2, similarity="euclidean", loop_clip=None, compactness=0.1, merge_threshold=0.1, max_tokens=9),
], ids=repr)
def test_rules_in_triton(gpu: Any, mixed: Draw, rules: Rules) -> None:
    features = mixed((3, 3, 11, 13), -SCALE, SCALE, first=8).to(torch.int16)  # nearly flat, an outlier, noise
    before = features.clone()
    assert_same(gpu.superpixels(features, rules), reference.superpixels(features, rules))
    assert torch.equal(features, before)


@FEW
@pytest.mark.parametrize(("shape", "rules"), [
    ((1, 1, 1, 1), Rules(levels=3)),
    ((2, 5, 1, 1), ALL),
    ((2, 3, 1, 2), Rules(levels=3)),
    ((2, 2, 1, 17), Rules(levels=3)),
    ((2, 4, 1, 17), ALL),
    ((2, 4, 17, 1), Rules(levels=3)),
    ((2, 1, 17, 1), ALL),
    ((2, 1, 2, 9), Rules()),
    ((3, 5, 7, 4), Rules(levels=3)),
], ids=str)
def test_shapes_in_triton(gpu: Any, mixed: Draw, shape: tuple[int, ...], rules: Rules) -> None:
    features = mixed(shape, -SCALE, SCALE).to(torch.int16)
    assert_same(gpu.superpixels(features, rules), reference.superpixels(features, rules))


@FEW
@pytest.mark.parametrize(("similarity", "compactness"), [("cosine", 0.0), ("cosine", 0.25), ("euclidean", 0.25)])
def test_ties_in_triton(gpu: Any, mixed: Draw, similarity: Any, compactness: float) -> None:
    """Flat images, checkerboards, stripes, two values, two bits: in one batch, so that none sees another."""
    features = mixed((7, 2, 5, 7), -SCALE, SCALE, first=0).to(torch.int16)
    rules = Rules(levels=3, similarity=similarity, compactness=compactness, max_tokens=2)
    assert_same(gpu.superpixels(features, rules), reference.superpixels(features, rules))


@pytest.mark.usefixtures("torch_threads")
def test_threads_change_nothing(texture: Texture) -> None:
    features = texture(10, (5, 3, 9, 13), -SCALE, SCALE).to(torch.int16)
    rules = Rules(levels=3, max_tokens=4)
    assert_same(numba.superpixels(features, rules), reference.superpixels(features, rules))
