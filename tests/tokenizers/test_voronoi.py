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


def mix(x: np.ndarray) -> np.ndarray:
    """SplitMix64."""
    x = (x + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draws_of(image: Tensor, seed: int, count: int) -> np.ndarray:
    pixels = image.flatten().numpy().astype(np.uint64)
    total = int((pixels * mix(np.arange(1, len(pixels) + 1, dtype=np.uint64))).sum())
    start = np.uint64((total + seed * 0x9E3779B97F4A7C15) % 2**64)
    return mix(start + np.arange(count, dtype=np.uint64))


def expected_sites(image: Tensor, seed: int, cells: int) -> np.ndarray:
    """The rule, one image and one draw at a time."""
    height, width = image.shape[1:]
    pixels = height * width
    if 2 * cells > pixels:
        drawn = list(np.argsort(draws_of(image, seed, pixels))[:cells])
    else:
        drawn = list(dict.fromkeys(int(draw) % pixels for draw in draws_of(image, seed, 20 * cells)))[:cells]
    flat = np.array(sorted(drawn))
    return np.stack([flat // width, flat % width], axis=-1)


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


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (16, 16), (33, 20), (1, 300), (40, 50)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.5, 0.51, 1.0])
@pytest.mark.parametrize("seed", [0, 7, -1, 2**63, 3**50])
def test_the_rule(
    sites_of: Callable[[VoronoiTokenizer, Tensor], Tensor], size: tuple[int, int], share: float, seed: int
) -> None:
    cells = max(1, int(share * size[0] * size[1]))
    images = noise(seed % 1000, 3, 3, *size)
    tokenizer = VoronoiTokenizer(cells, seed)
    sites = sites_of(tokenizer, images)
    assert sites.dtype == torch.int32
    for b, image in enumerate(images):
        assert np.array_equal(sites[b], expected_sites(image, seed, cells))
        assert torch.equal(sites_of(tokenizer, image)[0], sites[b])
    assert torch.equal(sites_of(tokenizer, images.flip(0)), sites.flip(0))


def test_more_draws_for_one_image_change_no_other(sites_of: Callable[[VoronoiTokenizer, Tensor], Tensor]) -> None:
    images = noise(3, 100, 1, 2, 6)
    distinct = torch.tensor([len(np.unique(draws_of(image, 0, 12) % np.uint64(12))) for image in images])
    assert 0 < (distinct < 6).sum() < 100  # some images need more than 2 · 6 draws
    sites = sites_of(VoronoiTokenizer(6), images)
    for image, own in zip(images, sites, strict=True):
        assert np.array_equal(own, expected_sites(image, 0, 6))


@pytest.mark.parametrize("batch", [1, 21, 22, 43])
def test_batches_of_any_length(sites_of: Callable[[VoronoiTokenizer, Tensor], Tensor], batch: int) -> None:
    """21 images of 3 × 64 × 64 are fingerprinted at once on the CPU."""
    images = noise(4, batch, 3, 64, 64)
    sites = sites_of(VoronoiTokenizer(), images)
    for image, own in zip(images, sites, strict=True):
        assert np.array_equal(own, expected_sites(image, 0, 16))


def test_an_image_larger_than_a_chunk(sites_of: Callable[[VoronoiTokenizer, Tensor], Tensor]) -> None:
    images = noise(5, 2, 3, 300, 310)
    for image, own in zip(images, sites_of(VoronoiTokenizer(50, seed=2), images), strict=True):
        assert np.array_equal(own, expected_sites(image, 2, 50))


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
