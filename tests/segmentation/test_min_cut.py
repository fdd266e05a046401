"""The minimum cut against every choice, and against scipy's maximum flow."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spit.segmentation.min_cut import minimum_cut


def energy(chosen: np.ndarray, gains: np.ndarray, pairs: np.ndarray, costs: np.ndarray) -> float:
    return float(costs[chosen[pairs[:, 0]] != chosen[pairs[:, 1]]].sum() - gains[chosen].sum())


def problem(seed: int, nodes: int, edges: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.integers(0, nodes - 1, edges), np.zeros(edges, int)], 1)
    pairs[:, 1] = rng.integers(pairs[:, 0] + 1, nodes)
    return rng.integers(-40, 40, nodes) / 4, pairs, rng.integers(0, 40, edges) / 4


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(0, 16))
def test_no_choice_is_better(seed: int, nodes: int, edges: int) -> None:
    gains, pairs, costs = problem(seed, nodes, edges)
    found = minimum_cut(gains, pairs, costs)
    every = [np.array(choice) for choice in product((False, True), repeat=nodes)]
    least = min(energy(choice, gains, pairs, costs) for choice in every)
    assert energy(found, gains, pairs, costs) == pytest.approx(least)
    best = [choice.sum() for choice in every if energy(choice, gains, pairs, costs) == pytest.approx(least)]
    assert found.sum() == min(best), "of equals the one with the fewest"


def test_as_large_as_the_flow_of_scipy() -> None:
    sparse, csgraph = pytest.importorskip("scipy.sparse"), pytest.importorskip("scipy.sparse.csgraph")
    gains, pairs, costs = problem(3, 400, 1500)
    found = minimum_cut(gains, pairs, costs)
    ends = np.arange(400)
    rows = np.concatenate([pairs[:, 0], pairs[:, 1], np.full(400, 400), ends])
    columns = np.concatenate([pairs[:, 1], pairs[:, 0], ends, np.full(400, 401)])
    room = np.concatenate([costs, costs, gains.clip(0), (-gains).clip(0)]) * 4
    flow = csgraph.maximum_flow(sparse.csr_matrix((room.astype(np.int32), (rows, columns)), shape=(402, 402)), 400, 401)
    assert energy(found, gains, pairs, costs) == pytest.approx(flow.flow_value / 4 - gains.clip(0).sum())


def test_without_edges_each_decides_for_itself() -> None:
    found = minimum_cut(np.array([1.0, -1.0, 0.0]), np.zeros((0, 2), np.int64), np.zeros(0))
    assert found.tolist() == [True, False, False]


@pytest.mark.parametrize(("pairs", "costs", "message"), [
    ([[0, 400_000_000]], [1.0], "expected edges between nodes 0 to 1, got 0 to 400000000"),
    ([[-1, 0]], [1.0], "expected edges between nodes 0 to 1, got -1 to 0"),
    ([[0, 1]], [-1.0], "expected finite gains, and a finite cost of 0 or more"),
    ([[0, 1]], [np.nan], "expected finite gains, and a finite cost of 0 or more"),
    ([[0, 1]], [1.0, 1.0], "expected finite gains, and a finite cost of 0 or more for each of 1 edges"),
])
def test_what_is_no_graph(pairs: list[list[int]], costs: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        minimum_cut(np.ones(2), np.array(pairs), np.array(costs))
