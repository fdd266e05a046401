from math import exp

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spit.evaluation import knn
from spit.evaluation.knn import knn_scores


def test_by_hand() -> None:
    """One image at cosine 1 for class 0, two at 0.6 for class 1: the temperature decides."""
    train = torch.tensor([[2.0, 0.0], [3.0, 4.0], [0.3, -0.4], [-1.0, 0.0]])
    labels, query = torch.tensor([0, 1, 1, 0]), torch.tensor([[5.0, 0.0]])
    scores = knn_scores(train, labels, query, classes=3, neighbors=3, temperature=0.5)[0]
    assert scores / scores[0] == pytest.approx([1, 2 * exp(-0.8), 0])
    assert knn_scores(train, labels, query, 3, neighbors=3, temperature=1.0).argmax() == 1
    assert knn_scores(train, labels, query, 3, neighbors=1, temperature=1.0).tolist() == [[1, 0, 0]]


@given(st.integers(0, 99), st.integers(1, 12), st.sampled_from([1, 3, 5000]))
def test_equal_to_a_loop(seed: int, neighbors: int, chunk: int) -> None:
    random = torch.Generator().manual_seed(seed)
    train, queries = (torch.randn(count, 5, generator=random) for count in (9, 4))
    labels = torch.randint(0, 4, (9,), generator=random)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knn, "CHUNK", chunk)
        scores = knn_scores(train, labels, queries, 4, neighbors, 0.3)
    for query, votes in zip(queries, scores, strict=True):
        cosines = [float(torch.cosine_similarity(query, other, dim=0)) for other in train]
        expected = [0.0] * 4
        for place in sorted(range(9), key=lambda i: -cosines[i])[:neighbors]:
            expected[labels[place]] += exp((cosines[place] - 1) / 0.3)
        assert votes.tolist() == pytest.approx(expected, abs=1e-5)


def test_lengths_do_not_matter_and_nothing_overflows() -> None:
    train, labels = torch.eye(3), torch.arange(3)
    scores = knn_scores(train, labels, 1e4 * torch.eye(3), 3, 20, temperature=1e-3)
    assert torch.equal(scores, torch.eye(3))


@pytest.mark.parametrize(("count", "neighbors", "temperature"), [(0, 1, 1.0), (2, 0, 1.0), (2, 1, 0.0)])
def test_refused(count: int, neighbors: int, temperature: float) -> None:
    with pytest.raises(ValueError, match="expected training images"):
        knn_scores(torch.ones(count, 2), torch.zeros(count, dtype=torch.int64), torch.ones(1, 2), 2, neighbors,
                   temperature)
