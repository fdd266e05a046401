import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from spit.evaluation.linear import fit_linear, hold_out

FEW = (1.0, 0.1, 0.01)


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
def test_refused(count: int, penalties: list[float]) -> None:
    with pytest.raises(ValueError, match="expected training images and penalties"):
        fit_linear(torch.ones(count, 2), torch.zeros(count, dtype=torch.int64), 2, penalties)
