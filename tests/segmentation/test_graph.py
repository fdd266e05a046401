"""The graph of regions: sizes, edges, colours, and larger regions."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spit.segmentation.graph import RegionGraph, connected
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer


def test_a_hand_worked_graph() -> None:
    image = torch.zeros(3, 2, 3, dtype=torch.uint8)
    image[0, :, 2] = 200
    graph = RegionGraph.of(image, torch.tensor([[0, 0, 1], [0, 2, 1]]))
    assert graph.sizes.tolist() == [3, 2, 1]
    assert (graph.pairs.tolist(), graph.lengths.tolist()) == ([[0, 1], [0, 2], [1, 2]], [1, 2, 1])
    assert graph.rim.tolist() == [3, 2, 1]
    assert graph.centers.tolist() == [[1 / 3, 1 / 3], [0.5, 2], [1, 1]]
    assert graph.sums[:, 0].tolist() == [0, 400, 0]


def test_colors_are_those_of_cielab() -> None:
    color = pytest.importorskip("skimage.color")
    image = torch.randint(0, 256, (3, 4, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    graph = RegionGraph.of(image, torch.arange(20).view(4, 5))
    expected = color.rgb2lab(image.permute(1, 2, 0).numpy()).reshape(-1, 3)
    np.testing.assert_allclose(graph.colors, expected, atol=0.02)
    grey = RegionGraph.of(image[:1], torch.arange(20).view(4, 5))
    np.testing.assert_allclose(grey.colors, RegionGraph.of(image[:1].expand(3, -1, -1),
                                                           torch.arange(20).view(4, 5)).colors)


def test_joined_regions_have_the_graph_of_their_own_labels() -> None:
    image = torch.randint(0, 256, (3, 40, 50), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    hierarchy = SuperpixelTokenizer(levels=3).hierarchy(image)
    fine, coarse = hierarchy[2].blocks[0][0], hierarchy[3].blocks[0][0]
    joined = RegionGraph.of(image, fine).joined(hierarchy.parents[2].numpy().astype(np.int64))
    own = RegionGraph.of(image, coarse)
    for name in ("sizes", "sums", "pairs", "lengths", "rim"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(own, name), name)


def test_pieces() -> None:
    labels = PatchTokenizer(4)(torch.zeros(3, 12, 12)).blocks[0][0]
    graph = RegionGraph.of(torch.zeros(3, 12, 12), labels)
    kind = np.array([1, 0, 1, 1, 0, 0, 1, 1, 1], bool)
    assert graph.pieces(kind).tolist() == [0, 1, 2, 0, 1, 1, 0, 0, 0]
    assert connected(np.array([[4, 3], [3, 1]]), 5).tolist() == [0, 1, 2, 1, 1]


def test_labels_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"labels of the image's \(4, 4\) pixels, got shape \(4, 5\)"):
        RegionGraph.of(torch.zeros(3, 4, 4), torch.zeros(4, 5, dtype=torch.int32))


@pytest.mark.parametrize("labels", [[[0, -1]], np.empty((0, 4), np.int32)])
def test_labels_that_are_no_regions_are_refused(labels: object) -> None:
    numbers = torch.tensor(np.array(labels))
    with pytest.raises(ValueError, match="expected labels of 0 or more for some pixels, got shape"):
        RegionGraph.of(torch.zeros(3, *numbers.shape), numbers)


def test_edges_beyond_the_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="expected edges between nodes 0 to 2, got 1 to 3"):
        connected(np.array([[1, 3]]), 3)


@given(numbers=arrays(np.int64, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=st.integers(0, 12)),
       seed=st.integers(0, 99))
def test_any_labels_by_counting_pixel_by_pixel(numbers: np.ndarray, seed: int) -> None:
    """Regions may be anything here: in pieces, or without pixels."""
    height, width = numbers.shape
    image = torch.randint(0, 256, (2, height, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    graph = RegionGraph.of(image, torch.from_numpy(numbers))
    count, edges = int(numbers.max()) + 1, Counter[tuple[int, int]]()
    sums, rim = np.zeros((count, 4)), np.zeros(count)
    for row, column in np.ndindex(height, width):
        own = numbers[row, column]
        sums[own] += [*image[:, row, column].tolist(), row, column]
        rim[own] += row in (0, height - 1) or column in (0, width - 1)
        for beside in numbers[row : row + 1, column + 1 : column + 2].ravel(), numbers[row + 1 : row + 2, column]:
            edges.update((min(own, other), max(own, other)) for other in beside.tolist() if other != own)
    np.testing.assert_array_equal(graph.sums, sums)
    np.testing.assert_array_equal(graph.sizes, np.bincount(numbers.ravel(), minlength=count))
    assert [tuple(pair) for pair in graph.pairs.tolist()] == sorted(edges)
    assert graph.lengths.tolist() == [edges[tuple(pair)] for pair in graph.pairs.tolist()]
    if min(height, width) > 1:
        np.testing.assert_array_equal(graph.rim, rim)


@given(pairs=st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=20))
def test_connected_nodes_as_sets(pairs: list[tuple[int, int]]) -> None:
    pieces = [{node} for node in range(16)]
    for one, other in pairs:
        joined = next(piece for piece in pieces if one in piece) | next(piece for piece in pieces if other in piece)
        pieces = [piece for piece in pieces if not piece & joined] + [joined]
    smallest = {node: min(piece) for piece in pieces for node in piece}
    found = connected(np.array(pairs, np.int64).reshape(-1, 2), 16)
    assert found.tolist() == [smallest[node] for node in range(16)]
