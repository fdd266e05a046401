"""spit.hierarchy: one tree, every count."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage import data, measure

import spit


def test_a_tree_has_every_count_that_superpixels_gives() -> None:
    image = data.chelsea()
    tree = spit.hierarchy(image)
    assert repr(tree) == "Tree(1 to 135,300 regions of an image of 300×451)"
    for n in (1, 30, 600, 70_000, 200_000):
        assert np.array_equal(tree.at(n), spit.superpixels(image, n, refine=0))


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), fine=st.integers(1, 90), coarse=st.integers(1, 90), compactness=st.floats(0, 20),
       dense=st.none() | st.floats(0.1, 1))
def test_partitions_are_nested_in_a_mask(seed: int, fine: int, coarse: int, compactness: float,
                                         dense: float | None) -> None:
    rng = np.random.default_rng(seed)
    mask = None if dense is None else rng.random((9, 11)) < dense
    if mask is not None:
        mask[4, 4] = True
    tree = spit.hierarchy(rng.integers(0, 256, (9, 11), np.uint8), compactness=compactness, mask=mask)
    fine, coarse = max(fine, coarse), min(fine, coarse)
    parents = tree.between(fine, coarse)
    assert parents[0] == 0
    assert np.array_equal(parents[tree.at(fine)], tree.at(coarse))
    assert tree.at(coarse).max() == min(max(coarse, tree.fewest), tree.most)
    assert tree.fewest == (1 if mask is None else measure.label(mask, connectivity=1).max())


def test_cut_at_a_height() -> None:
    image = np.zeros((20, 30), np.uint8)
    image[:, 10:20], image[:, 20:] = 30, 200
    tree = spit.hierarchy(image, compactness=0.01)
    assert tree.cut(1e3)[0].tolist() == [1] * 10 + [2] * 10 + [3] * 10
    joined = 3 * 200 * 200 / 400 * 30**2  # three equal channels
    assert tree.cut(joined * 0.99).max() == 3
    assert tree.cut(joined * 1.01).max() == 2
    assert np.array_equal(tree.cut(np.inf), np.ones((20, 30), np.int32))
    assert tree.cut(0).max() == 600


def test_errors() -> None:
    tree = spit.hierarchy(np.zeros((4, 4), np.uint8))
    with pytest.raises(ValueError, match="1 or more, got 0"):
        tree.at(0)
    with pytest.raises(ValueError, match="height of at least 0, got -1"):
        tree.cut(-1)
    with pytest.raises(ValueError, match="height of at least 0, got nan"):
        tree.cut(np.nan)
    with pytest.raises(ValueError, match="at most 2 regions, got 3"):
        tree.between(2, 3)
    with pytest.raises(ValueError, match="compactness of at least 0, got -1"):
        spit.hierarchy(np.zeros((4, 4), np.uint8), compactness=-1)
