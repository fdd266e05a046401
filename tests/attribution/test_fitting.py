import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from spit.attribution import fit_prototypes
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
