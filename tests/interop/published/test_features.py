import pytest
import torch

from features.test_extractor import photos, stripes
from spit.interop.published.features import PublishedFeatures
from spit.partition import Partition


@pytest.mark.parametrize("gradients", [True, False])
def test_the_release_interleaves_bins(gradients: bool) -> None:
    """The formulas are in tests/paper/test_published.py."""
    extractor = PublishedFeatures(resolution=4, gradients=gradients)
    assert extractor == PublishedFeatures(**extractor.to_dict())
    images, partition = photos(2, 8, 11).requires_grad_(), stripes(2, 8, 11)
    values = extractor(images, partition).values
    channels = 5 if gradients else 4
    assert values.shape == (int(partition.offsets[-1]), extractor.width)
    assert extractor.width == 16 * channels
    color, rest = values.view(-1, 16, channels).split([3, channels - 3], 2)
    assert torch.autograd.grad(color.sum(), images, retain_graph=True)[0].abs().max() > 0
    assert not rest.requires_grad or not torch.autograd.grad(rest.sum(), images)[0].any()
    tight = Partition(partition.blocks, partition.offsets, partition.boxes())
    assert torch.equal(extractor(images, tight).values, values)


def test_only_rgb() -> None:
    with pytest.raises(ValueError, match="channels of at least 3, got 1"):
        PublishedFeatures(channels=1)
    with pytest.raises(ValueError, match=r"expected images with 3 channels, got shape \(1, 1, 8, 11\)"):
        PublishedFeatures()(photos(1, 8, 11, 1), stripes(1, 8, 11))
