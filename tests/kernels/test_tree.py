"""The tree on every backend: the same bits, and cuts that are exact, connected and nested."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from skimage import measure
from torch import Tensor

from spit.kernels import reference
from spit.kernels import tensors as numba
from spit.kernels.numba.tree import grid_blocks
from spit.kernels.portable import tree_colors
from spit.kernels.rules import tree_weights

Texture = Callable[[int, tuple[int, ...], int, int], Tensor]

SIDES = st.sampled_from([1, 2, 3, 7, 23, 66])
SHAPES = st.tuples(st.just(1), st.integers(1, 9), SIDES, SIDES)
COMPACTNESS = st.sampled_from([0.0, 0.1, 0.3, 1.0, 3.0, 30.0]) | st.floats(0, 1000)
SEEDS = st.integers(0, 100_000)


def weights_of(planes: Tensor, compactness: float) -> Tensor:
    return torch.tensor(tree_weights(len(planes), compactness), dtype=torch.float64)


def assert_same(got: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> None:
    assert [part.dtype for part in got] == [part.dtype for part in expected] == [torch.int32, torch.float32]
    assert all(map(torch.equal, got, expected))


@settings(max_examples=150)
@given(seed=SEEDS, shape=SHAPES, compactness=COMPACTNESS, dense=st.none() | st.floats(0, 1))
def test_parity_on_textures(texture: Texture, seed: int, shape: tuple[int, ...], compactness: float,
                            dense: float | None) -> None:
    planes = tree_colors(texture(seed, shape, 0, 255).to(torch.uint8))[0]
    mask = None if dense is None else torch.from_numpy(np.random.default_rng(seed).random(shape[2:]) < dense)
    given_planes, weights = planes.clone(), weights_of(planes, compactness)
    tree = numba.grid_tree(planes, weights, mask)
    assert torch.equal(planes, given_planes)
    assert_same(tree, reference.grid_tree(planes, weights, mask))
    for count in {int(tree[1].isinf().sum()), (len(tree[0]) + int(tree[1].isinf().sum())) // 2, len(tree[0])}:
        labels = numba.cut_tree(*tree, count)
        assert torch.equal(labels, reference.cut_tree(*tree, count))
        assert labels.dtype == torch.int32


@pytest.mark.parametrize("compactness", [0.0, 0.3, 10.0])
def test_parity_on_photographs(photo: Callable[[str, int], Tensor], compactness: float) -> None:
    images = torch.stack([photo("astronaut", 96), photo("chelsea", 96)])[:, :, :70]
    labels = numba.tree_labels(images, 50, compactness, 3)
    assert torch.equal(labels, reference.tree_labels(images, 50, compactness, 3))
    assert torch.equal(numba.tree_labels(images[:, :1], 50, compactness, 0),
                       reference.tree_labels(images[:, :1], 50, compactness, 0))


@pytest.mark.usefixtures("torch_threads")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=SEEDS, sides=st.tuples(*[st.sampled_from([1, 2, 5, 17, 33])] * 3), bands=st.integers(1, 7),
       dense=st.none() | st.floats(0, 1))
def test_parity_on_volumes(texture: Texture, seed: int, sides: tuple[int, ...], bands: int,
                           dense: float | None) -> None:
    """Blocks have 16³ points."""
    planes = texture(seed, (1, bands, sides[0] * sides[1], sides[2]), -999, 999)[0].view(bands, *sides)
    weights = torch.tensor([1.0] * bands + [0.5, 2.0, 2.0], dtype=torch.float64)
    mask = None if dense is None else torch.from_numpy(np.random.default_rng(seed).random(sides) < dense)
    assert_same(numba.grid_tree(planes, weights, mask), reference.grid_tree(planes, weights, mask))


@settings(max_examples=60)
@given(seed=SEEDS, count=st.integers(1, 60), extra=st.integers(0, 90), bands=st.integers(1, 7))
def test_parity_on_any_graph(seed: int, count: int, extra: int, bands: int) -> None:
    rng = np.random.default_rng(seed)
    edges = torch.from_numpy(rng.integers(0, count, (extra, 2)))
    edges = edges[edges[:, 0] != edges[:, 1]]
    points = torch.from_numpy(rng.integers(-9, 9, (count, bands)))
    weights = torch.from_numpy(rng.random(bands))
    assert_same(numba.graph_tree(points, weights, edges), reference.graph_tree(points, weights, edges))


@pytest.mark.usefixtures("torch_threads")
@pytest.mark.parametrize(("shape", "corners"), [((150, 140), [(0, 0), (64, 0), (128, 64)]),
                                                ((40, 20, 33), [(0, 0, 0), (16, 0, 0), (32, 16, 16)])])
def test_parts_of_a_grid_have_the_blocks_of_the_whole(shape: tuple[int, ...], corners: list[tuple[int, ...]]) -> None:
    """So an image that is read part by part gives the same labels."""
    rng = np.random.default_rng(0)
    planes = rng.integers(-500, 500, (3, *shape)).astype(np.int16)
    weights = np.array([1 / 256] * 3 + [0.09] * len(shape))
    mask, names = rng.random(shape) < 0.8, np.arange(np.prod(shape)).reshape(shape)
    whole = grid_blocks(planes, weights, mask)
    for corner in corners:
        here = tuple(slice(first, None) for first in corner)
        part = grid_blocks(np.ascontiguousarray(planes[:, *here]), weights, mask[here], (0, *corner)[-3:],
                           (1, *shape)[-3:])
        assert np.array_equal(part.parents.reshape(mask[here].shape), whole.parents.reshape(shape)[here])
        assert np.array_equal(part.heights.reshape(mask[here].shape), whole.heights.reshape(shape)[here])
        rows = np.isin(whole.names, names[here])
        order, expected = part.names.argsort(), whole.names[rows].argsort()
        for values in ("names", "tops", "sums"):
            assert np.array_equal(getattr(part, values)[order], getattr(whole, values)[rows][expected]), values


@settings(max_examples=60)
@given(seed=SEEDS, height=SIDES, width=SIDES, compactness=COMPACTNESS)
def test_cuts_are_exact_connected_and_nested(texture: Texture, seed: int, height: int, width: int,
                                             compactness: float) -> None:
    image = texture(seed, (1, 3, height, width), 0, 255).to(torch.uint8)
    finer = torch.arange(height * width)
    for count in range(height * width, 0, -max(height * width // 9, 1)):
        labels = numba.tree_labels(image, count, compactness, 0)[0]
        assert measure.label(labels.numpy(), background=-1, connectivity=1).max() == count == labels.max() + 1
        flat = labels.flatten().long()
        firsts = torch.full((count,), len(flat)).scatter_reduce_(0, flat, torch.arange(len(flat)), "amin")
        assert torch.equal(firsts, firsts.sort().values), "numbered by their first pixels"
        above = torch.zeros(int(finer.max()) + 1, dtype=torch.int64).scatter(0, finer, flat)
        assert torch.equal(above[finer], flat), "nested"
        finer = flat


@settings(max_examples=40)
@given(seed=SEEDS, height=SIDES, width=SIDES, compactness=COMPACTNESS)
def test_heights_rise_and_every_tree_has_one_root(texture: Texture, seed: int, height: int, width: int,
                                                  compactness: float) -> None:
    planes = tree_colors(texture(seed, (1, 3, height, width), 0, 255).to(torch.uint8))[0]
    parents, heights = numba.grid_tree(planes, weights_of(planes, compactness), None)
    assert (heights == torch.inf).sum() == (parents == torch.arange(height * width)).sum() == 1
    assert (heights > 0).all()


@pytest.mark.parametrize("compactness", [0.0, 0.3])
def test_dots_do_not_join_their_background_one_a_round(monkeypatch: pytest.MonkeyPatch, compactness: float) -> None:
    definition, rounds = import_module("spit.kernels.reference.tree"), []
    link = definition.link
    monkeypatch.setattr(definition, "link", lambda *given: rounds.append(len(given[0])) or link(*given))
    image = np.where(np.random.default_rng(0).random((1, 3, 200, 300)) < 0.05, 255, 100).astype(np.uint8)
    labels = reference.tree_labels(torch.from_numpy(image), 300, compactness, 0)
    assert len(rounds) < 60
    assert torch.equal(labels, numba.tree_labels(torch.from_numpy(image), 300, compactness, 0))


def test_large_values_need_64_bits() -> None:
    planes = torch.full((1, 40, 50), 2**21, dtype=torch.int32)
    planes[0, 20:] = -(2**21)
    weights = torch.tensor([1.0, 0.1, 0.1], dtype=torch.float64)
    tree = numba.grid_tree(planes, weights, None)
    assert_same(tree, reference.grid_tree(planes, weights, None))
    assert numba.cut_tree(*tree, 2).view(40, 50)[:, 0].tolist() == [0] * 20 + [1] * 20


@pytest.mark.usefixtures("torch_threads")
def test_threads_and_the_batch_change_nothing(texture: Texture) -> None:
    images = torch.cat([texture(seed, (1, 3, 9, 13), 0, 255) for seed in range(11)]).to(torch.uint8)
    labels = numba.tree_labels(images, 12, 0.3, 2)
    for image, right in zip(images, labels, strict=True):
        assert torch.equal(reference.tree_labels(image[None], 12, 0.3, 2)[0], right)


def test_on_a_gpu(gpu: Any, texture: Texture) -> None:
    images = texture(10, (2, 3, 9, 13), 0, 255).to(torch.uint8)
    assert torch.equal(gpu.tree_labels(images, 12, 0.3, 2), reference.tree_labels(images, 12, 0.3, 2))
