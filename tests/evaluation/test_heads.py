from math import exp

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from spit.evaluation import heads
from spit.evaluation.heads import fit_linear, hold_out, knn_scores

FEW = (1.0, 0.1, 0.01)


def test_neighbours_by_hand() -> None:
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
        patch.setattr(heads, "CHUNK", chunk)
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
def test_no_neighbours(count: int, neighbors: int, temperature: float) -> None:
    with pytest.raises(ValueError, match="expected training images"):
        knn_scores(torch.ones(count, 2), torch.zeros(count, dtype=torch.int64), torch.ones(1, 2), 2, neighbors,
                   temperature)


def clusters(per_class: int = 20, spread: float = 0.3, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    centres = torch.randn(4, 6, generator=torch.Generator().manual_seed(9))
    labels = torch.arange(4).repeat(per_class)
    return centres[labels] + spread * torch.randn(len(labels), 6, generator=random), labels


def test_clusters_are_told_apart() -> None:
    head = fit_linear(*clusters(), classes=4, penalties=FEW)
    tokens, labels = clusters(seed=1)
    assert (head(tokens).argmax(1) == labels).all()


def test_the_gradient_vanishes() -> None:
    """At the minimum of the penalised loss: it is convex, so there is no other."""
    tokens, labels = clusters(spread=2.0)
    head = fit_linear(tokens, labels, 4, penalties=[0.03])
    weight, bias = head.weight.clone().requires_grad_(), head.bias.clone().requires_grad_()
    inputs = (tokens.double() - head.mean) / head.scale
    loss = F.cross_entropy(inputs @ weight.T + bias, labels) + 0.03 / 2 * weight.square().sum()
    loss.backward()
    assert max(float(weight.grad.abs().max()), float(bias.grad.abs().max())) < 2e-5
    assert head.penalty == 0.03


def test_scikit_learn_agrees() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    tokens, labels = clusters(spread=2.0)
    head = fit_linear(tokens, labels, 4, penalties=[0.03])
    inputs = ((tokens.double() - head.mean) / head.scale).numpy()
    theirs = linear_model.LogisticRegression(C=1 / (0.03 * len(labels)), tol=1e-8, max_iter=1000).fit(inputs, labels)
    assert head.weight.numpy() == pytest.approx(theirs.coef_, abs=1e-4)


def test_units_and_a_constant_column_do_not_matter() -> None:
    tokens, labels = clusters(spread=1.0)
    moved = torch.cat([tokens * 1000 - 7, torch.full((len(tokens), 1), 3.0)], 1)
    for query in (tokens, tokens.flip(0)):
        other = torch.cat([query * 1000 - 7, torch.full((len(query), 1), 3.0)], 1)
        assert torch.allclose(fit_linear(tokens, labels, 4, [0.1])(query).softmax(1),
                              fit_linear(moved, labels, 4, [0.1])(other).softmax(1), atol=1e-3)


def test_the_same_twice() -> None:
    tokens, labels = clusters(spread=2.0)
    first, second = (fit_linear(tokens, labels, 4, FEW) for _ in range(2))
    assert torch.equal(first.weight, second.weight)
    assert first.penalty == second.penalty


def test_noise_asks_for_a_strong_penalty() -> None:
    tokens, labels = clusters(per_class=10, spread=0.05)
    noise = torch.randn(tokens.shape, generator=torch.Generator().manual_seed(3))
    assert fit_linear(noise, labels, 4, (1.0, 1e-4)).penalty == 1.0
    assert fit_linear(tokens, labels, 4, FEW).penalty == 1.0  # all are equally right: the strongest is taken


def test_a_fifth_of_each_class_is_held_out() -> None:
    labels = torch.tensor([0, 1, 0, 0, 1, 0, 0, 0, 2])
    assert hold_out(labels).nonzero().flatten().tolist() == [6]  # the fifth of class 0
    assert hold_out(torch.arange(3).repeat(10)).sum() == 6


def test_one_image_a_class_has_nothing_to_hold_out() -> None:
    assert fit_linear(torch.eye(3), torch.arange(3), 3)(torch.eye(3)).argmax(1).tolist() == [0, 1, 2]


@pytest.mark.parametrize(("count", "penalties"), [(0, [1.0]), (2, []), (2, [1.0, 0.0])])
def test_no_penalties(count: int, penalties: list[float]) -> None:
    with pytest.raises(ValueError, match="expected training images and penalties"):
        fit_linear(torch.ones(count, 2), torch.zeros(count, dtype=torch.int64), 2, penalties)
