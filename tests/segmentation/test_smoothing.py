import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spit.segmentation import RegionGraph
from spit.segmentation.smoothing import smooth


def random_graph(seed: int, regions: int = 12) -> RegionGraph:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(regions, (10, 14), generator=generator)
    labels.view(-1)[:regions] = torch.arange(regions)
    return RegionGraph.of(torch.rand(3, 10, 14, generator=generator), labels)


@settings(deadline=None)
@given(seed=st.integers(0, 1000), strength=st.sampled_from([0.0, 1.0, 48.0, 1000.0]))
def test_it_is_the_minimum_of_the_energy(seed: int, strength: float) -> None:
    graph = random_graph(seed)
    scores = np.random.default_rng(seed).normal(size=len(graph.sizes))
    given_scores = scores.copy()
    one, other = graph.pairs.T
    weights = strength * graph.lengths * np.exp(-np.square(graph.colors[one] - graph.colors[other]).sum(1) / 400)
    matrix = np.diag(graph.sizes)
    for first, second, weight in zip(one, other, weights, strict=True):
        matrix[[first, second], [first, second]] += weight
        matrix[[first, second], [second, first]] -= weight
    found = smooth(graph, scores, strength, contrast=20)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, graph.sizes * scores), atol=1e-6)
    np.testing.assert_allclose(graph.sizes @ found, graph.sizes @ scores, atol=1e-5)
    np.testing.assert_array_equal(scores, given_scores)


def test_scores_stop_at_an_edge_of_colour() -> None:
    labels = torch.arange(4).repeat_interleave(6).expand(8, 24)
    image = torch.zeros(3, 8, 24)
    image[:, :, 12:] = 1.0
    found = smooth(RegionGraph.of(image, labels), np.array([1.0, -0.5, -1.0, -1.0]))
    assert (found[:2] > 0).all()
    np.testing.assert_allclose(found[2:], -1)


def test_nothing_to_smooth() -> None:
    graph = random_graph(0)
    assert not smooth(graph, np.zeros(len(graph.sizes))).any()
    alone = RegionGraph.of(torch.zeros(3, 2, 2), torch.zeros(2, 2, dtype=torch.long))
    assert smooth(alone, np.array([0.7])).tolist() == [0.7]
    with pytest.raises(ValueError, match="each of the 12 regions"):
        smooth(graph, np.zeros(3))
