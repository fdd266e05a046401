from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from spit import kernels
from spit.tokenizers import VoronoiTokenizer


@pytest.fixture
def sites_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[VoronoiTokenizer, Tensor], Tensor]:
    """The sites (B, N, 2) that a tokenizer hands to the kernel."""
    seen: list[Tensor] = []
    kernel = kernels.nearest_sites
    monkeypatch.setattr(kernels, "nearest_sites", lambda sites, *size: seen.append(sites) or kernel(sites, *size))

    def draw(tokenizer: VoronoiTokenizer, images: Tensor) -> Tensor:
        seen.clear()
        tokenizer(images)
        return torch.cat(seen)

    return draw


def noise(seed: int, *shape: int) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("size", "cells"), [(224, 196), (256, 256), (384, 576)])
def test_default_is_a_cell_for_every_256_pixels(size: int, cells: int) -> None:
    part = VoronoiTokenizer()(torch.zeros(3, size, size))
    assert part.counts.tolist() == [cells]
    assert part.frames is None


def test_small_images_have_a_cell() -> None:
    assert VoronoiTokenizer()([torch.zeros(3, 1, 1), torch.zeros(3, 15, 17)]).counts.tolist() == [1, 1]


@pytest.mark.parametrize("size", [(16, 16), (1, 256), (256, 1), (5, 51), (3, 3)])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.49, 0.5, 0.51, 0.9, 1.0])
def test_the_count_is_exact_and_sites_are_their_own(
    sites_of: Callable[[VoronoiTokenizer, Tensor], Tensor], pieces: Callable[[Tensor], int],
    size: tuple[int, int], share: float
) -> None:
    cells = max(1, round(share * size[0] * size[1]))
    images = noise(0, 3, 3, *size)
    sites = sites_of(VoronoiTokenizer(cells), images)
    assert sites.shape == (3, cells, 2)
    part = VoronoiTokenizer(cells)(images)
    for labels, own in zip(part.labels, sites.long(), strict=True):
        assert len(own.unique(dim=0)) == cells
        assert pieces(labels) == len(labels.unique()) == cells
        assert torch.equal(labels[own[:, 0], own[:, 1]], torch.arange(cells, dtype=torch.int32))
    if cells == size[0] * size[1]:
        assert part.sizes().unique().tolist() == [1]


def test_pixels_belong_to_the_nearest_site(sites_of: Callable[[VoronoiTokenizer, Tensor], Tensor]) -> None:
    images = noise(1, 4, 3, 64, 80)
    sites = sites_of(VoronoiTokenizer(90), images).numpy()
    labels = VoronoiTokenizer(90)(images).labels.numpy()
    y, x = np.mgrid[:64, :80]
    for b in range(4):
        distance = (y[..., None] - sites[b, :, 0]) ** 2 + (x[..., None] - sites[b, :, 1]) ** 2
        own = np.take_along_axis(distance, labels[b][..., None].astype(np.int64), -1)[..., 0]
        # All but the few that repair had to move; tests/kernels/test_voronoi.py says exactly which.
        assert (own > distance.min(-1)).mean() < 0.002


def test_seeds_and_images_have_cells_of_their_own() -> None:
    image = noise(0, 3, 32, 32)
    other = image.clone()
    other[2, 31, 31] ^= 1  # one bit of the last pixel
    parts = [VoronoiTokenizer(20, seed=seed)(image).labels for seed in (0, 1, 2, -1, 2**63)]
    parts.append(VoronoiTokenizer(20)(other).labels)
    parts.append(VoronoiTokenizer(20)(image.flip(0)).labels)  # the same pixels in other channels
    for i, part in enumerate(parts):
        for later in parts[i + 1 :]:
            assert not torch.equal(part, later)
    assert torch.equal(VoronoiTokenizer(20)(image).labels, parts[0])


@pytest.mark.parametrize("cells", [4, 12, 16, 40])
def test_every_pixel_is_as_likely_a_site(
    sites_of: Callable[[VoronoiTokenizer, Tensor], Tensor], cells: int
) -> None:
    """400 images of 8 × 8: site counts per pixel within 5 deviations; 4 and 40 draw in different ways."""
    sites = sites_of(VoronoiTokenizer(cells), noise(2, 400, 1, 8, 8)).long()
    hits = torch.bincount((8 * sites[..., 0] + sites[..., 1]).flatten(), minlength=64).double()
    share = cells / 64
    deviation = (400 * share * (1 - share)) ** 0.5
    assert ((hits - 400 * share).abs() < 5 * deviation).all()
    assert 0.5 < float(hits.std()) / deviation < 1.5


def test_black_and_constant_images_work() -> None:
    parts = [VoronoiTokenizer(9)(torch.full((3, 12, 12), value, dtype=torch.uint8)).labels for value in (0, 1, 255)]
    assert not torch.equal(parts[0], parts[1])
    assert not torch.equal(parts[1], parts[2])


def test_too_many_cells() -> None:
    with pytest.raises(ValueError, match="17 Voronoi cells do not fit in an image of 4×4 = 16 pixels"):
        VoronoiTokenizer(17)(torch.zeros(3, 4, 4))


@pytest.mark.parametrize("cells", [0, -3])
def test_too_few_cells(cells: int) -> None:
    with pytest.raises(ValueError, match=f"cells of at least 1, got {cells}"):
        VoronoiTokenizer(cells)


@pytest.mark.parametrize("options", [{"cells": 2.5}, {"cells": "9"}, {"cells": 9, "seed": 0.5}, {"seed": "a"}])
def test_numbers_must_be_whole(options: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError), match=str(list(options.values())[-1])):
        VoronoiTokenizer(**options)
