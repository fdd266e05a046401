"""The tree against ``plain_tree``, which is independent of spit: every label, parent and height on every backend."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import spit
from paper import plain_superpixels, plain_tree
from paper.test_superpixels import BACKENDS, IMAGES, planes
from spit import kernels

SHARE = {1: 1, 2: 3 / 2, 3: 1, 4: 3 / 4}  # of a band in spit.superpixels: all count as three; grey is three already
COMPACTNESS = st.sampled_from([0.0, 0.3, 1.0, 10.0]) | st.floats(0, 100)


def merges_of(tree: tuple[Any, Any]) -> list[plain_tree.Merge]:
    parents, heights = (part.tolist() for part in tree)
    return sorted((height, gone, name) for gone, (name, height) in enumerate(zip(parents, heights, strict=True))
                  if name != gone)


@BACKENDS
@settings(max_examples=60)
@given(image=IMAGES, share=st.floats(0, 1), compactness=COMPACTNESS)
def test_labels(name: str, image: npt.NDArray[np.uint8], share: float, compactness: float) -> None:
    n = 1 + round(share**2 * (image[..., 0].size - 1))
    with kernels.backend(name):
        labels = kernels.tree_labels(planes(image)[None], n, compactness, 0)
    assert labels[0].tolist() == plain_tree.superpixels(image, n, compactness)


@BACKENDS
@pytest.mark.parametrize("shape", [(2, 131, 3), (66, 3, 3), (1, 200, 1)])
@pytest.mark.parametrize("values", [2, 20, 256])
def test_blocks(name: str, shape: tuple[int, ...], values: int) -> None:
    """The first rounds join nothing across the sides of blocks."""
    image = np.random.default_rng(0).integers(0, values, shape).astype(np.uint8)
    with kernels.backend(name):
        for n in (1, 9, 60):
            labels = kernels.tree_labels(planes(image)[None], n, 0.3, 0)
            assert labels[0].tolist() == plain_tree.superpixels(image, n, 0.3)


@BACKENDS
@settings(max_examples=80)
@given(data=st.data(), count=st.integers(1, 24), bands=st.integers(1, 9))
def test_any_graph(name: str, data: Any, count: int, bands: int) -> None:
    value = st.integers(-3, 3) | st.integers(-(2**15), 2**15)
    points = data.draw(st.lists(st.tuples(*[value] * bands), min_size=count, max_size=count))
    ends = st.integers(0, count - 1)
    edges = [edge for edge in data.draw(st.lists(st.tuples(ends, ends), max_size=60)) if edge[0] != edge[1]]
    weights = data.draw(st.lists(st.sampled_from([0.0, 1.0, 0.09]) | st.floats(0, 9), min_size=bands, max_size=bands))
    with kernels.backend(name):
        tree = kernels.graph_tree(torch.tensor(points), torch.tensor(weights, dtype=torch.float64),
                                  torch.tensor(edges, dtype=torch.int64).view(-1, 2))
    assert merges_of(tree) == sorted(plain_tree.tree(points, weights, edges))


@settings(max_examples=60)
@given(image=IMAGES, share=st.floats(0, 1), compactness=COMPACTNESS, seed=st.integers(0, 999), dense=st.floats(0.2, 1))
def test_masks(image: npt.NDArray[np.uint8], share: float, compactness: float, seed: int, dense: float) -> None:
    mask = np.random.default_rng(seed).random(image.shape[:2]) < dense
    mask[0, 0] = True
    n = 1 + round(share**2 * (mask.sum() - 1))
    labels = spit.superpixels(image, n, compactness=compactness, mask=mask, refine=0, start_label=0)
    assert labels.tolist() == plain_tree.superpixels(image, n, compactness, mask, SHARE[image.shape[2]])


def recut(image: npt.NDArray[np.uint8], n: int, refine: int, share: float) -> list[list[int]]:
    labels = plain_tree.superpixels(image, n if refine < 2 else 2 * n, 0.3, share=share)
    colors = plain_superpixels.pixel_values(planes(image).tolist())
    regions = plain_superpixels.refined(colors, plain_superpixels.regions_of(labels), min(refine, 1))
    if refine > 1:
        regions = plain_tree.joined(image, regions, n, 0.3, share)
        regions = plain_superpixels.refined(colors, regions, refine - 1)
    return plain_superpixels.labels_of(regions)


@settings(max_examples=60)
@given(image=IMAGES, n=st.integers(1, 40), refine=st.integers(0, 4))
def test_what_users_call(image: npt.NDArray[np.uint8], n: int, refine: int) -> None:
    labels = spit.superpixels(image, n, compactness=0.3, min_size=1, refine=refine, start_label=0)
    assert labels.tolist() == recut(image, n, refine, SHARE[image.shape[2]])


@BACKENDS
@settings(max_examples=30)
@given(image=IMAGES, n=st.integers(1, 40), refine=st.integers(0, 4))
def test_what_models_take(name: str, image: npt.NDArray[np.uint8], n: int, refine: int) -> None:
    with kernels.backend(name):
        labels = kernels.tree_labels(planes(image)[None], n, 0.3, refine)
    assert labels[0].tolist() == recut(image, n, refine, 1)


@pytest.mark.parametrize("name", range(100))
def test_chances_differ(name: int) -> None:
    """A bijection: no two pairs at one region tie."""
    assert len({plain_tree.chance(name) ^ plain_tree.chance(other) for other in range(1000)}) == 1000
