from pathlib import Path

import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from spit.attribution import fit_prototypes
from spit.attribution.fitting import fit_centroids
from spit.errors import ImageError


def test_own_classes_batches_and_tensors_agree(small, images):
    model, seen = small(), []
    whole = fit_prototypes(model, images, progress=seen.append)
    assert seen == [3]
    assert whole.values.shape == (5, 5, 24)
    assert whole.counts.tolist() == torch.bincount(model(images).argmax(1), minlength=5).tolist()
    assert whole.about["labels"] == "the model's own"
    streamed = fit_prototypes(model, iter([images[:1], [images[1], images[2]]]))
    torch.testing.assert_close(streamed.values, whole.values, atol=2e-3, rtol=1e-2)


def test_labels_are_taken_and_the_head_stands_in(small, images):
    model = small()
    got = fit_prototypes(model, images, [0, 0, 2], count=2, orthogonality=0.0)
    assert got.counts.tolist() == [2, 0, 1, 0, 0]
    assert got.about["classes_without_images"] == 3
    token = F.normalize(model(images, record=()).class_token[2], dim=0)
    torch.testing.assert_close(got.values[2], token.detach().expand(2, -1), atol=2e-3, rtol=1e-2)
    row = F.normalize(model.head.linear.weight[4].detach(), dim=0)
    torch.testing.assert_close(got.values[4], row.expand(2, -1), atol=1e-3, rtol=1e-2)


def test_a_folder(small, images, tmp_path):
    for index, image in enumerate(images):
        Image.fromarray(image.movedim(0, -1).numpy()).save(tmp_path / f"{index}.png")
    got = fit_prototypes(small(), tmp_path, [1, 2, 3], size=32, batch=2)
    assert got.counts.tolist() == [0, 1, 1, 1, 0]
    with pytest.raises(ImageError, match="no-folder"):
        fit_prototypes(small(), tmp_path / "no-folder")


@pytest.mark.parametrize("kind", [str, Path])
def test_the_size_of_paths_of_any_kind(small, images, tmp_path, kind):
    model = small()
    for index, image in enumerate(images):
        Image.fromarray(image.movedim(0, -1).numpy()).save(tmp_path / f"{index}.png")
    paths = [kind(tmp_path / f"{index}.png") for index in range(3)]
    expected = fit_prototypes(model, tmp_path, size=16)
    assert not torch.equal(expected.values, fit_prototypes(model, tmp_path, size=32).values)
    for given in ([paths], [tuple(paths)], paths, iter([paths[:2], paths[2]])):
        torch.testing.assert_close(fit_prototypes(model, given, size=16).values, expected.values)


def test_errors(small, images):
    for arguments, message in (
        ((small().train(), images), r"model\.eval\(\)"),
        ((small(classes=0), images), "without a head"),
        ((small(), []), "got none"),
        ((small(), images, [0, 1]), "each of 3 images"),
        ((small(), images, [0, 1, 5]), "from 0 to 4"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_prototypes(*arguments)


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
