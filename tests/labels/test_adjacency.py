"""spit.adjacency against Partition.adjacency and scikit-image's graphs."""

import sys

import numpy as np
import pytest
from hypothesis import given
from skimage import data, graph

import spit
from labels.maps import LABELS


@given(LABELS)
def test_as_of_a_partition(labels: np.ndarray) -> None:
    found = spit.adjacency(labels, background=None)
    edges, lengths = spit.Partition.from_labels(labels).adjacency()
    assert np.array_equal(found.edges, found.labels[edges.numpy()])
    assert np.array_equal(found.lengths, lengths.numpy())
    assert np.array_equal(found.areas, np.unique(labels, return_counts=True)[1])
    inside = spit.adjacency(labels)
    assert np.array_equal(inside.edges, found.edges[(found.edges != 0).all(1)])


def test_as_scikit_images_graphs() -> None:
    image = data.coffee()
    labels = spit.superpixels(image, n=150)
    expected = graph.rag_mean_color(image, labels, connectivity=1)
    found = spit.adjacency(labels, image)
    rag = found.to_rag()
    assert isinstance(rag, graph.RAG)
    assert {frozenset(edge) for edge in rag.edges} == {frozenset(edge) for edge in expected.edges}
    for i, j, weight in expected.edges(data="weight"):
        assert rag.edges[i, j]["weight"] == pytest.approx(weight)
        assert rag.edges[i, j]["contrast"] == rag.edges[i, j]["weight"]
    for label, about in expected.nodes(data=True):
        assert rag.nodes[label]["pixel count"] == about["pixel count"]
        np.testing.assert_allclose(rag.nodes[label]["total color"], about["total color"])
    ours, theirs = graph.cut_threshold(labels, rag, 29), graph.cut_threshold(labels, expected, 29)
    assert len(np.unique(np.stack([ours, theirs], -1).reshape(-1, 2), axis=0)) == ours.max() + 1 == theirs.max() + 1


def test_networkx() -> None:
    networkx = pytest.importorskip("networkx")
    found = spit.adjacency(np.array([[1, 1, 4], [1, 7, 4], [0, 0, 9]])).to_networkx()
    assert networkx.to_dict_of_lists(found) == {1: [4, 7], 4: [1, 7, 9], 7: [1, 4], 9: [4]}
    assert found.edges[1, 7] == {"length": 2, "weight": 2}
    assert found.nodes[1] == {"labels": [1], "pixel count": 3}


def test_volumes() -> None:
    labels = np.array([[[1, 2]], [[1, 0]], [[3, 2]]])
    found = spit.adjacency(labels, np.stack([labels * 3, labels * 4], -1))
    assert (found.edges.tolist(), found.lengths.tolist()) == ([[1, 2], [1, 3], [2, 3]], [1, 1, 1])
    assert found.contrasts is not None
    assert found.contrasts.tolist() == [5, 10, 5]


@pytest.mark.parametrize(("package", "form"), [("networkx", "to_networkx"), ("skimage.graph", "to_rag")])
def test_without_the_package(package: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(spit.MissingExtra, match=r"spit-vit\[regions\]"):
        getattr(spit.adjacency(np.ones((2, 2), int)), form)()
