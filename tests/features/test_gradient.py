import torch

from spit.features.gradient import gradient_features

OFFSETS = torch.tensor([0, 1])


def one_region(images: torch.Tensor) -> torch.Tensor:
    return torch.zeros(len(images), *images.shape[2:], dtype=torch.int32)


def test_a_ramp_falls_into_one_cell() -> None:
    """Up by 0.2 a column: ∇x = 0.4 inside, and 0.2 at the two ends where the border is repeated."""
    ramp = (torch.arange(5.0) * 0.2).expand(1, 3, 4, 5)
    features = gradient_features(ramp, one_region(ramp), OFFSETS, 20, 0.0).view(20, 20)
    assert features[10].count_nonzero() == 2  # ∇y = 0 lies at the lower end of cell 10
    assert features.count_nonzero() == 2
    torch.testing.assert_close(features[10, 13:15].sum(), torch.tensor(0.6), rtol=0, atol=1e-6)
    torch.testing.assert_close(features[10, 11:13].sum(), torch.tensor(0.4), rtol=0, atol=1e-6)


def test_a_transposed_image_gives_a_transposed_histogram() -> None:
    images = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    here = gradient_features(images, one_region(images), OFFSETS, 8, 0.1).view(8, 8)
    there = gradient_features(images.mT.contiguous(), one_region(images), OFFSETS, 8, 0.1).view(8, 8)
    assert not torch.allclose(here, there, atol=1e-4)
    torch.testing.assert_close(there, here.mT, rtol=0, atol=1e-5)


def test_a_brighter_image_has_the_same_texture() -> None:
    images = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)) / 2
    here = gradient_features(images, one_region(images), OFFSETS, 8, 0.1)
    there = gradient_features(images + 0.5, one_region(images), OFFSETS, 8, 0.1)
    assert here.max() > 0.01
    torch.testing.assert_close(there, here, rtol=0, atol=1e-5)


def test_no_derivative_flows_to_the_image() -> None:
    images = torch.rand(1, 3, 4, 4, requires_grad=True)
    assert not gradient_features(images, one_region(images), OFFSETS, 4, 0.1).requires_grad
