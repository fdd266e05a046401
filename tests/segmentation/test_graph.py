"""The graph of regions: sizes, edges, colours, and larger regions."""

import numpy as np
import pytest
import torch

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
