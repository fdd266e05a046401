"""Lemma 1 and the positions of Prop. 1 (App. A): square patches make φ the canonical ViT's."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from spit import kernels
from spit.features import FeatureExtractor
from spit.features.color import NORMALIZATIONS
from spit.partition import Partition

BACKENDS = pytest.mark.parametrize("backend", ["reference", "numba"])


def square_patches(batch: int, height: int, width: int, patch: int) -> Partition:
    """τ*: ⌈H/ρ⌉ · ⌈W/ρ⌉ squares in raster order, the last ones reaching beyond the image."""
    rows, columns = -(-height // patch), -(-width // patch)
    y, x = torch.arange(height)[:, None] // patch, torch.arange(width) // patch
    labels = (y * columns + x).int().expand(batch, height, width)
    corner = torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij"), -1) * patch
    frames = torch.cat([corner, corner + patch], -1).view(-1, 4).int().repeat(batch, 1)
    return Partition.of(labels, torch.full((batch,), rows * columns), frames)


def canonical(images: Tensor, patch: int) -> Tensor:
    """φ* ∘ τ*: vec of the zero-padded squares, ``(B·N, C·ρ·ρ)``."""
    _, _, height, width = images.shape
    padded = F.pad(images, (0, -width % patch, 0, -height % patch))
    return F.unfold(padded, patch, stride=patch).mT.flatten(0, 1)


@BACKENDS
@pytest.mark.parametrize("normalization", ["contrast", "imagenet", "none"])
@pytest.mark.parametrize(("height", "width"), [(16, 16), (8, 24), (9, 14), (3, 5), (17, 8)])
def test_color_features_of_square_patches_are_their_pixels(
    backend: str, normalization: str, height: int, width: int
) -> None:
    patch = 8
    images = torch.rand(2, 3, height, width, generator=torch.Generator().manual_seed(0))
    extractor = FeatureExtractor(resolution=patch, gradients=False, normalization=normalization)
    with kernels.backend(backend):
        tokens = extractor(images, square_patches(2, height, width, patch))
    expected = canonical(NORMALIZATIONS[normalization](images), patch)
    assert expected.shape == (2 * -(-height // patch) * -(-width // patch), 3 * patch**2)
    assert torch.equal(tokens.values[:, : 3 * patch**2], expected)


@BACKENDS
@pytest.mark.parametrize("patch", [2, 4])
def test_empirical_positions_of_square_patches_are_the_standard_basis(backend: str, patch: int) -> None:
    """H = W = β² = ρ²: ξ^pos is the identity (the factor c_n is 1 as we divide by the size)."""
    side = patch**2
    extractor = FeatureExtractor(resolution=patch, position_bins=patch, position_sigma=0.0, gradients=False)
    with kernels.backend(backend):
        tokens = extractor(torch.zeros(1, 3, side, side), square_patches(1, side, side, patch))
    assert torch.equal(tokens.values[:, 3 * patch**2 :], torch.eye(patch**2))


@BACKENDS
def test_gaussian_positions_are_nearly_diagonal(backend: str) -> None:
    """The remark after Prop. 1: the tails of a narrow kernel weigh little beside its own cell."""
    extractor = FeatureExtractor(resolution=16, position_bins=16, position_sigma=0.025, gradients=False)
    with kernels.backend(backend):
        tokens = extractor(torch.zeros(1, 3, 256, 256), square_patches(1, 256, 256, 16))
    positions = tokens.values[:, 3 * 16**2 :]
    own = positions.diagonal()
    others = positions - torch.diag(own)
    assert own.min() > 0.1
    assert others.abs().max() < 0.02 * own.min()
