"""The solver against torch.linalg.eigh."""

import pytest
import torch
from torch import Tensor

from spit.segmentation.lanczos import leading_vectors


def graph(size: int, seed: int, density: float = 0.3) -> tuple[Tensor, Tensor]:
    """D^(−1/2) W D^(−1/2) of a random graph, and its first eigenvector."""
    generator = torch.Generator().manual_seed(seed)
    joined = torch.rand(size, size, generator=generator, dtype=torch.float64) < density
    weights = torch.where(joined | joined.T | torch.eye(size, dtype=torch.bool), 1.0, 1e-5).double()
    degree = weights.sum(1)
    return weights / degree.sqrt() / degree.sqrt()[:, None], torch.nn.functional.normalize(degree.sqrt(), dim=0)


@pytest.mark.parametrize(("size", "density"), [(2, 0.0), (7, 0.3), (60, 0.1), (200, 0.02), (200, 0.5)])
def test_as_a_dense_solver_has_it(size: int, density: float) -> None:
    matrix, known = graph(size, seed=size, density=density)
    _, vectors = torch.linalg.eigh(matrix)
    [found] = leading_vectors(matrix[None], known[None])
    assert abs(float(found @ vectors[:, -2])) == pytest.approx(1, abs=1e-9)
    assert abs(float(found @ known)) < 1e-9


def test_padding_and_batch_change_nothing_that_shows() -> None:
    sizes = (20, 90, 55)
    graphs = [graph(size, seed=size) for size in sizes]
    matrices, known = torch.zeros(3, 90, 90, dtype=torch.float64), torch.zeros(3, 90, dtype=torch.float64)
    for index, (matrix, vector) in enumerate(graphs):
        matrices[index, : len(matrix), : len(matrix)] = matrix
        known[index, : len(vector)] = vector
    together = leading_vectors(matrices, known)
    for index, (matrix, vector) in enumerate(graphs):
        [alone] = leading_vectors(matrix[None], vector[None])
        torch.testing.assert_close(together[index, : sizes[index]], alone, rtol=0, atol=1e-9)
        assert not together[index, sizes[index] :].any()


def test_nothing_to_find_is_zero() -> None:
    complete = torch.full((1, 5, 5), 0.2, dtype=torch.float64)
    assert not leading_vectors(complete, torch.full((1, 5), 5**-0.5, dtype=torch.float64)).any()
    assert not leading_vectors(torch.ones(1, 1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)).any()


def test_equal_eigenvalues_give_one_of_their_vectors_and_the_same_again() -> None:
    matrix = torch.block_diag(*[torch.full((4, 4), 0.25, dtype=torch.float64)] * 3)  # three cliques, nothing between
    known = torch.full((12,), 12**-0.5, dtype=torch.float64)
    first, again = (leading_vectors(matrix[None], known[None])[0] for _ in range(2))
    torch.testing.assert_close(matrix @ first, first)
    assert torch.equal(first, again)
