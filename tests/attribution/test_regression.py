import torch

from attribution.games import generator, grid
from spit.attribution.regression import NOISES, OWN, regress


def test_the_posterior_mean_by_hand():
    """With the covariance's inverse as penalty, at the noise that leaving answers out chooses."""
    centers, random = grid(3), generator()
    present = torch.rand(12, 9, generator=random) < 0.5
    answers = torch.rand(12, generator=random).double()
    found = regress([(present, answers)], centers, 0.7)
    x, y = present.double() - present.double().mean(0), (answers - answers.mean()) / answers.std()
    covariance = torch.exp(-torch.cdist(centers, centers).square() / (4 * 0.49)) + OWN * torch.eye(9).double()
    mean = (x @ covariance @ x.T).diagonal().mean()
    errors, fits = [], []
    for noise in NOISES:
        def fit(rows, noise=noise):
            normal = x[rows].T @ x[rows] + noise * mean * covariance.inverse()
            return torch.linalg.solve(normal, x[rows].T @ y[rows])

        rows = torch.arange(12)
        errors.append(float(torch.stack([y[row] - x[row] @ fit(rows != row) for row in rows]).square().mean()))
        fits.append(fit(rows >= 0))
    torch.testing.assert_close(found, fits[errors.index(min(errors))])


def test_groups_have_their_own_mean_and_scale():
    present = torch.rand(60, 16, generator=generator()) < 0.5
    worth = present[:, 5].double()
    split = regress([(present[:30], worth[:30]), (present[30:], 100 + 7 * worth[30:])], grid(4), 0.5)
    assert split.argmax() == 5
    torch.testing.assert_close(split, regress([(present[:30], worth[:30]), (present[30:], worth[30:])], grid(4), 0.5))


def test_equal_answers_say_nothing():
    present = torch.rand(4, 9, generator=generator()) < 0.5
    assert regress([(present, torch.ones(4)), (present[:1], torch.rand(1))], grid(3), 1.0).tolist() == [0] * 9
    assert regress([(present, torch.rand(4))], grid(3), 0).isfinite().all()
