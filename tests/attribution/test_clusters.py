import torch
from torch.nn import functional as F

from spit.attribution.clusters import fit_centroids


def penalty(centroids, weight):
    """J(ν) of App. D."""
    return weight * (torch.eye(centroids.shape[1]) - centroids @ centroids.transpose(1, 2)).square().sum((1, 2)).mean()


def test_without_the_term_it_is_k_means():
    """Two tight groups in class 0: each centroid is its group's mean."""
    points = F.normalize(torch.tensor([[1, 0.1, 0], [1, -0.1, 0], [0, 1, 0.1], [0, 1, -0.1], [0, 0, 1.0]]), dim=1)
    centroids = fit_centroids(points, torch.tensor([0, 0, 0, 0, 1]), 3, 2, 0.0)
    expected = torch.stack([points[:2].mean(0), points[2:4].mean(0)])
    order = centroids[0, :, 0].argsort(descending=True)
    torch.testing.assert_close(centroids[0, order], expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(centroids[1], points[4].expand(2, -1), atol=1e-4, rtol=1e-4)  # held at the mean
    assert not centroids[2].any()


def test_the_term_holds_centroids_apart():
    random = torch.Generator().manual_seed(0)
    points = F.normalize(torch.randn(60, 8, generator=random) * 0.3 + 1, dim=1)
    labels = torch.arange(60) % 2
    free, held = (fit_centroids(points, labels, 2, 3, weight) for weight in (0.0, 0.1))
    assert penalty(held, 0.1) < penalty(free, 0.1) / 2

    def objective(centroids):
        nearest = torch.cdist(points[:, None], centroids[labels]).amin(2).square().mean()
        return nearest + penalty(centroids, 0.1)

    assert objective(held) < objective(free)


def test_the_same_every_time():
    points = F.normalize(torch.randn(20, 6, generator=torch.Generator().manual_seed(1)), dim=1)
    labels = torch.arange(20) % 3
    assert torch.equal(fit_centroids(points, labels, 3, 5, 0.1), fit_centroids(points, labels, 3, 5, 0.1))
