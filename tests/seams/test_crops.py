"""φ of wrapped backbones: what a token sees, and where it reads positions."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import spit
from spit.images import to_float
from spit.partition import Partition
from spit.seams import CropExtractor
from spit.seams.crops import by_grid, grid_weights


@pytest.fixture
def image(photo: Callable[[str, int], Tensor]) -> Tensor:
    return photo("coffee", 64)[None]


@pytest.mark.parametrize("place", ["centroid", "average"])
@pytest.mark.parametrize("embed", ["crop", "window", "pool"])
@pytest.mark.parametrize("side", [8, 16])
def test_squares_are_themselves(image: Tensor, side: int, embed: Any, place: Any) -> None:
    """A square sees its own pixels, and reads its own cell of the table."""
    extractor = CropExtractor(patch=side, embed=embed, place=place)
    placed = extractor.split(extractor(image, spit.PatchTokenizer(side)(image)))
    patches = F.unfold(to_float(image), side, stride=side)[0].T
    assert torch.allclose(placed.pixels, patches, atol=1e-6)
    assert torch.equal(placed.weights, torch.eye(len(patches)))
    assert placed.grids == ((64 // side, 64 // side),)


def test_a_crop_is_centred_unscaled_and_inside_the_image(image: Tensor) -> None:
    labels = torch.zeros(64, 64, dtype=torch.int64)
    labels[20:30, 31:38] = 1  # centroid (24.5, 34): an 8 × 8 crop from (21, 31), a half rounded up
    labels[60:, 60:] = 2  # centroid (61.5, 61.5): moved inside
    part = Partition.from_labels(labels)
    extractor = CropExtractor(patch=8)
    windows = extractor.windows(part)
    assert windows is not None
    assert windows[1:].tolist() == [[21, 31, 29, 39], [56, 56, 64, 64]]
    seen = extractor.split(extractor(image, part)).pixels.view(-1, 3, 8, 8)
    assert torch.allclose(seen[1], to_float(image)[0, :, 21:29, 31:39], atol=1e-6)
    assert torch.allclose(seen[2], to_float(image)[0, :, 56:, 56:], atol=1e-6)


def test_positions_lie_between_cells() -> None:
    """By hand on 2 × 3 cells: a quarter of the way down, half of the way between two columns, and outside."""
    weights = grid_weights(torch.tensor([[0.25, 0.5], [9.0, -3.0]]), (2, 3))
    assert weights.tolist() == [[0.375, 0.375, 0.0, 0.125, 0.125, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]]
    assert torch.allclose(grid_weights(torch.rand(50, 2) * 8 - 2, (4, 3)).sum(1), torch.ones(50))


def test_an_average_is_over_the_cells_that_a_region_covers() -> None:
    labels = torch.zeros(16, 16, dtype=torch.int64)
    labels[4:12, :8] = 1  # half of it in each of two cells of 8 × 8
    extractor = CropExtractor(patch=8, place="average", embed="pool")
    image = torch.rand(1, 3, 16, 16)
    placed = extractor.split(extractor(image, Partition.from_labels(labels)))
    assert placed.weights[1].tolist() == [0.5, 0.0, 0.5, 0.0]
    patches = F.unfold(image, 8, stride=8)[0].T
    assert torch.allclose(placed.pixels[1], (patches[0] + patches[2]) / 2, atol=1e-6)


def test_an_image_is_alone_in_its_batch(photo: Callable[[str, int], Tensor]) -> None:
    images = [photo("coffee", 64), photo("astronaut", 48), photo("chelsea", 64)]
    extractor, tokenizer = CropExtractor(patch=8, region=True), spit.SuperpixelTokenizer(levels=3)
    together = extractor(images, tokenizer(images))
    for rows, one in zip(together, images, strict=True):
        alone = extractor(one, tokenizer(one)).values
        assert torch.equal(rows[:, : alone.shape[1]], alone)
        assert not rows[:, alone.shape[1] :].any()  # cells that only larger images have
    placed = extractor.split(together)
    assert placed.grids == ((8, 8), (6, 6), (8, 8))
    counts = [len(rows) for rows in together]
    assert by_grid(placed.grids[:2], counts[:2]) == [((8, 8), slice(0, counts[0])),
                                                     ((6, 6), slice(counts[0], sum(counts[:2])))]


def test_the_features_of_the_region(image: Tensor) -> None:
    part = spit.SuperpixelTokenizer(levels=3)(image)
    extractor = CropExtractor(patch=8, region=True)
    placed = extractor.split(extractor(image, part))
    own = spit.FeatureExtractor(position_bins=4)(image, part).values
    assert torch.equal(placed.region, own)
    assert extractor.width == 3 * 64 + own.shape[1] + 2


def test_other_images_are_refused(image: Tensor) -> None:
    part = spit.PatchTokenizer(8)(image)
    with pytest.raises(ValueError, match="3 channels"):
        CropExtractor(patch=8)(image[:, :1], part)
    with pytest.raises(ValueError, match="2 images"):
        CropExtractor(patch=8)(image.expand(2, -1, -1, -1), part)
    with pytest.raises(ValueError, match="crop, window, pool"):
        CropExtractor(embed="whole")  # type: ignore[arg-type]
