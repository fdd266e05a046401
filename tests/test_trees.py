"""spit.hierarchy: one tree, every count."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage import data, measure

import spit
from spit.trees import Tree, absorbed


def test_a_tree_has_every_count_that_superpixels_gives() -> None:
    image = data.chelsea()
    tree = spit.hierarchy(image)
    assert repr(tree) == "Tree(1 to 135,300 regions of an image of 300×451)"
    for n in (1, 30, 600, 70_000, 200_000):
        assert np.array_equal(tree.at(n), spit.superpixels(image, n, refine=0))
    assert np.array_equal(tree.at(80, min_size=40), spit.superpixels(image, 80, min_size=40, refine=0))


def test_all_options() -> None:
    rng = np.random.default_rng(0)
    volume = rng.normal(size=(5, 4, 9, 8))
    volume[:, 2, 3, 3] = np.nan
    options = {"compactness": 1.5, "mask": rng.random((4, 9, 8)) < 0.9, "nodata": np.nan, "channel_axis": 0,
               "spacing": (3, 1, 1), "weights": range(5), "to": "raw"}
    tree = spit.hierarchy(volume, **options)  # type: ignore[arg-type]
    assert np.array_equal(tree.at(20), spit.superpixels(volume, 20, **options))  # type: ignore[arg-type]
    assert not tree.at(20)[2, 3, 3]
    for name, value in {"compactness": 0.3, "mask": None, "spacing": None, "weights": None}.items():
        other = spit.hierarchy(volume, **options | {name: value})  # type: ignore[arg-type]
        assert not np.array_equal(other.heights, tree.heights), name


def drawn(seed: int, dense: float | None, compactness: float = 0.3) -> Tree:
    """The tree of a small image, of a volume for every third seed, in a mask of that density."""
    rng = np.random.default_rng(seed)
    shape = (3, 5, 7) if seed % 3 == 0 else (9, 11)
    mask = None if dense is None else rng.random(shape) < dense
    if mask is not None:
        mask.flat[40] = True
    image = rng.integers(0, 256, shape, np.uint8)
    return spit.hierarchy(image // 60 * 60 if seed % 2 else image, compactness=compactness, mask=mask,
                          channel_axis=None)


SEED, DENSE = st.integers(0, 10_000), st.none() | st.floats(0.1, 1)


@settings(max_examples=100)
@given(seed=SEED, fine=st.integers(1, 90), coarse=st.integers(1, 90), compactness=st.floats(0, 20), dense=DENSE,
       times=st.none() | st.floats(1, 1e6))
def test_partitions_are_nested_in_a_mask(seed: int, fine: int, coarse: int, compactness: float,
                                         dense: float | None, times: float | None) -> None:
    tree = drawn(seed, dense, compactness)
    if times is not None:
        tree = tree.keep(np.random.default_rng(seed).random(tree.mask.shape) < 0.1, times)
    fine, coarse = max(fine, coarse), min(fine, coarse)
    parents = tree.between(fine, coarse)
    assert parents[0] == 0
    assert np.array_equal(parents[tree.at(fine)], tree.at(coarse))
    assert tree.at(coarse).max() == min(max(coarse, tree.fewest), tree.most)
    assert tree.fewest == measure.label(tree.mask, connectivity=1).max()
    assert measure.label(tree.at(fine), background=0, connectivity=1).max() == tree.at(fine).max()


def merges(tree: Tree) -> list[tuple[frozenset[int], frozenset[int], float]]:
    """The two regions of every merge and its height, from the lowest."""
    regions = {pixel: frozenset([pixel]) for pixel in range(len(tree.parents))}
    found = []
    for name in sorted(np.flatnonzero(np.isfinite(tree.heights)), key=lambda name: (tree.heights[name], name)):
        one, other = regions[int(name)], regions[int(tree.parents[name])]
        found.append((one, other, float(tree.heights[name])))
        regions |= dict.fromkeys(one | other, one | other)
    return found


@settings(max_examples=150)
@given(seed=SEED, n=st.integers(1, 60), least=st.integers(2, 15), dense=DENSE)
def test_a_minimum_size(seed: int, n: int, least: int, dense: float | None) -> None:
    """The highest merges of two large regions are undone, and all above these; what is small joins a neighbour."""
    tree = drawn(seed, dense)
    joined = merges(tree)
    large = [at for at, (one, other, _) in enumerate(joined) if min(len(one), len(other)) >= least]
    undone = set(large[max(len(large) - max(n - tree.fewest, 0), 0):])
    for at, (one, other, _) in enumerate(joined):
        if any(joined[low][0] | joined[low][1] <= part for low in undone if low < at for part in (one, other)):
            undone.add(at)
    names = np.arange(tree.mask.size)
    for at, (one, other, _) in enumerate(joined):
        if at not in undone:
            names[list(one | other)] = min(one | other)
    parts = np.where(tree.mask, names.reshape(tree.mask.shape) + 1, 0)
    labels = tree.at(n, least)
    sizes, whole = np.bincount(labels.ravel()), measure.label(tree.mask, connectivity=1)
    assert np.array_equal(labels > 0, tree.mask)
    assert labels.max() == min(max(n, tree.fewest), tree.fewest + len(large))
    assert measure.label(labels, background=0, connectivity=1).max() == labels.max()
    assert (sizes[labels] >= np.minimum(least, np.bincount(whole.ravel())[whole]))[tree.mask].all()
    firsts = [np.flatnonzero(labels.ravel() == label)[0] for label in range(1, labels.max() + 1)]
    assert firsts == sorted(firsts)
    right = rejoined(tree, [np.flatnonzero(parts == part) for part in np.unique(parts[tree.mask])], least)
    assert {tuple(np.flatnonzero(labels == label)) for label in range(1, labels.max() + 1)} == right


def rejoined(tree: Tree, regions: list[np.ndarray], least: int) -> set[tuple[int, ...]]:
    """Round after round, every region that is too small joins its cheapest neighbour that is not."""
    places = np.stack(np.unravel_index(np.arange(tree.mask.size), tree.mask.shape))
    points = np.concatenate([tree.planes.reshape(len(tree.planes), -1), places]).T.astype(float)
    regions = sorted(regions, key=min)

    def cost(one: np.ndarray, other: np.ndarray) -> np.float32:
        gap = points[one].sum(0) / len(one) - points[other].sum(0) / len(other)
        distance = sum(float(weight) * value * value for weight, value in zip(tree.weights, gap.tolist(), strict=True))
        return np.float32(len(one) * len(other) / (len(one) + len(other)) * distance)

    while True:
        large = {v for v, region in enumerate(regions) if len(region) >= least}
        joins = {}
        for v in set(range(len(regions))) - large:
            steps = places[:, regions[v], None]
            near = [u for u in large if np.abs(steps - places[:, None, regions[u]]).sum(0).min() == 1]
            if near:
                joins[v] = min(near, key=lambda u: (cost(regions[v], regions[u]), u))
        if not joins:
            return {tuple(sorted(region.tolist())) for region in regions}
        joined = {v: np.concatenate([regions[v], *(regions[gone] for gone in joins if joins[gone] == v)])
                  for v in range(len(regions)) if v not in joins}
        regions = list(joined.values())


def test_what_is_small_joins_the_cheapest_of_the_large_ones() -> None:
    labels = np.array([[1, 1, 1, 2, 3, 4, 4, 4, 4]])
    planes = np.array([[[0, 0, 0, 3, 9, 9, 9, 9, 9]]], np.int16)
    weights = np.array([1.0, 0, 0])
    assert absorbed(labels, planes, weights, 2).tolist() == [[1, 1, 1, 1, 2, 2, 2, 2, 2]]
    planes[0, 0, 3] = 8  # its neighbour 3 is small as well; 1 is all it has until 3 has joined 4
    assert absorbed(labels, planes, weights, 2).tolist() == [[1, 1, 1, 1, 2, 2, 2, 2, 2]]
    chain = np.array([[1, 2, 3, 4, 5, 5]])
    assert absorbed(chain, np.zeros((1, 1, 6), np.int16), weights, 2).tolist() == [[1] * 6]
    row = np.array([[1, 1, 1, 2, 3, 4, 5, 5, 5]])  # 2 and 4 join first; 3 then looks at the means with them
    for values, label in (([0, 0, 0, 40, 12, 16, 16, 16, 16], 1), ([0, 0, 0, 0, 9, 16, 16, 16, 16], 2)):
        assert absorbed(row, np.array([[values]], np.int16), weights, 2)[0, 4] == label
    alone = np.array([[1, 0, 2, 2], [0, 0, 2, 2]])
    assert absorbed(alone, np.zeros((1, 2, 4), np.int16), weights, 3).tolist() == alone.tolist()
    tied = np.array([[2, 2, 1, 3, 3]])
    assert absorbed(tied, np.zeros((1, 1, 5), np.int16), weights, 2).tolist() == [[1, 1, 1, 2, 2]]


@settings(max_examples=60)
@given(seed=SEED, dense=DENSE, times=st.floats(1, 1e6))
def test_kept_regions_are_higher(seed: int, dense: float | None, times: float) -> None:
    tree = drawn(seed, dense)
    kept = np.random.default_rng(seed).random(tree.mask.shape) < 0.05
    raised = tree.keep(kept, times)
    assert np.array_equal(raised.parents, tree.parents)
    pixels = set(np.flatnonzero(kept & tree.mask))
    right = [height * (times if pixels & (one | other) else 1) for one, other, height in merges(tree)]
    order = sorted(np.flatnonzero(np.isfinite(tree.heights)), key=lambda name: (tree.heights[name], name))
    assert np.allclose(raised.heights[order], right, rtol=1e-5)
    assert {one | other for one, other, _ in merges(raised)} == {one | other for one, other, _ in merges(tree)}


def test_more_regions_where_they_are_wanted() -> None:
    image, mask = data.chelsea(), np.zeros((300, 451), bool)
    mask[100:200, 150:300] = True
    tree = spit.hierarchy(image)
    counts = [len(np.unique(kept.at(200)[mask])) for kept in (tree, tree.keep(mask, 4), tree.keep(mask),
                                                              tree.keep(mask).keep(mask))]
    assert counts == sorted(counts)
    assert counts[2] > 1.5 * counts[0]
    click = np.zeros_like(mask)
    click[150, 200] = True
    sizes = [(labels == labels[150, 200]).sum() for labels in (tree.at(200), tree.keep(click).at(200))]
    assert sizes[1] < 0.5 * sizes[0]
    assert tree.keep(mask).at(200, min_size=30).max() == 200
    assert np.array_equal(tree.keep(np.zeros_like(mask)).heights, tree.heights)


def test_heights_stay_finite_however_often_regions_are_kept() -> None:
    tree = spit.hierarchy(np.random.default_rng(0).random((9, 8)))
    labels = tree.at(20)
    for _ in range(9):
        tree = tree.keep(tree.mask, 1e6)
    assert np.isfinite(tree.heights).sum() == 71
    assert np.array_equal(tree.at(1), np.ones((9, 8)))
    assert measure.label(tree.at(20), connectivity=1).max() == labels.max() == 20


def test_cut_at_a_height() -> None:
    image = np.zeros((20, 30), np.uint8)
    image[:, 10:20], image[:, 20:] = 30, 200
    tree = spit.hierarchy(image, compactness=0.01)
    assert tree.cut(1e3)[0].tolist() == [1] * 10 + [2] * 10 + [3] * 10
    joined = 3 * 200 * 200 / 400 * 30**2 * 200**0.125  # grey counts as three bands
    assert tree.cut(joined * 0.99).max() == 3
    assert tree.cut(joined * 1.01).max() == 2
    assert np.array_equal(tree.cut(np.inf), np.ones((20, 30), np.int32))
    assert tree.cut(0).max() == 600


def test_errors() -> None:
    tree = spit.hierarchy(np.zeros((4, 4), np.uint8))
    with pytest.raises(ValueError, match="1 or more, got 0"):
        tree.at(0)
    with pytest.raises(ValueError, match="min_size as a whole number of 1 or more, got 0"):
        tree.at(1, 0)
    with pytest.raises(ValueError, match="height of at least 0, got -1"):
        tree.cut(-1)
    with pytest.raises(ValueError, match="height of at least 0, got nan"):
        tree.cut(np.nan)
    with pytest.raises(ValueError, match="at most 2 regions, got 3"):
        tree.between(2, 3)
    with pytest.raises(ValueError, match="compactness of at least 0, got -1"):
        spit.hierarchy(np.zeros((4, 4), np.uint8), compactness=-1)
    with pytest.raises(ValueError, match=r"mask of bool and shape \(4, 4\), got float64 of shape \(4, 4\)"):
        tree.keep(np.zeros((4, 4)))
    for times in (0.5, np.nan, 1e7):
        with pytest.raises(ValueError, match="times from 1 to 1,000,000, got"):
            tree.keep(np.ones((4, 4), bool), times)
