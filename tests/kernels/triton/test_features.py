"""φ in Triton against the reference; float32 sums differ from float64 ones by less than 1e-6."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spit.kernels import reference

MAPS = [(1, 1, 1, 1), (2, 1, 9, 3), (2, 9, 1, 2), (2, 13, 8, 3), (1, 20, 37, 2)]  # B, H, W, regions
HISTOGRAMS = [  # B, H, W, regions; bins; sigma
    ((1, 1, 1, 1), 16, 0.025),
    ((2, 1, 9, 3), 16, 0.0),
    ((2, 9, 1, 2), 5, 0.1),
    ((2, 13, 8, 3), 16, 0.001),
    ((2, 13, 8, 3), 16, 0.025),
    ((2, 13, 8, 3), 5, 0.0),
    ((1, 20, 37, 2), 16, 2.0),
    ((1, 20, 37, 2), 7, 0.0),
    ((1, 20, 37, 2), 17, 0.05),
]


def random_maps(batch: int, height: int, width: int, regions: int) -> tuple[Tensor, Tensor, Tensor]:
    """Labels (regions scattered, not connected), offsets and tight boxes."""
    rng = np.random.default_rng(regions)
    labels, counts = [], []
    for _ in range(batch):
        names, dense = np.unique(rng.integers(0, regions, (height, width)), return_inverse=True)
        labels.append(dense.reshape(height, width))
        counts.append(len(names))
    offsets = torch.tensor(np.concatenate([[0], np.cumsum(counts)]))
    maps = torch.tensor(np.stack(labels)).int()
    return maps, offsets, reference.region_boxes(maps, offsets)


def images_of(labels: Tensor, channels: int = 3) -> Tensor:
    return torch.rand(len(labels), channels, *labels.shape[1:], generator=torch.Generator().manual_seed(1)) * 2 - 1


def close(got: Tensor, expected: Tensor, rtol: float = 0) -> None:
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=rtol)


class TestColorPatches:
    @pytest.mark.parametrize(("case", "resolution", "channels"), [
        (MAPS[0], 16, 3), (MAPS[1], 3, 1), (MAPS[2], 16, 4), (MAPS[3], 1, 2), (MAPS[3], 16, 3), (MAPS[4], 16, 3),
        (MAPS[4], 23, 5),  # 23²: two blocks
    ])
    def test_parity(self, gpu: Any, case: tuple[int, ...], resolution: int, channels: int) -> None:
        labels, offsets, boxes = random_maps(*case)
        images = images_of(labels, channels)
        got = gpu.color_patches(images, labels, offsets, boxes, resolution)
        assert got.shape == (len(boxes), channels, resolution, resolution)
        close(got, reference.color_patches(images, labels, offsets, boxes, resolution))

    def test_unmasked(self, gpu: Any) -> None:
        labels, offsets, boxes = random_maps(*MAPS[3])
        boxes[0] += torch.tensor([-1, 0, 1, 2], dtype=torch.int32)
        images = images_of(labels)
        close(*(backend.color_patches(images, labels, offsets, boxes, 7, False) for backend in (gpu, reference)))


class TestPositionHistogram:
    @pytest.mark.parametrize(("case", "bins", "sigma"), HISTOGRAMS)
    def test_parity(self, gpu: Any, case: tuple[int, ...], bins: int, sigma: float) -> None:
        labels, offsets, boxes = random_maps(*case)
        got = gpu.position_histogram(labels, offsets, bins, sigma, boxes)
        assert (got.shape, got.dtype) == ((len(boxes), bins * bins), torch.float32)
        close(got, reference.position_histogram(labels, offsets, bins, sigma))

    def test_boxes_are_found_where_not_given_and_may_be_wider(self, gpu: Any) -> None:
        labels, offsets, boxes = random_maps(2, 9, 7, 3)
        expected = reference.position_histogram(labels, offsets, 8, 0.1)
        wider = boxes + torch.tensor([-20, -3, 40, 3])
        close(gpu.position_histogram(labels, offsets, 8, 0.1), expected)
        close(gpu.position_histogram(labels, offsets, 8, 0.1, wider.int()), expected)


class TestGradientHistogram:
    @pytest.mark.parametrize(("case", "bins", "sigma"), HISTOGRAMS)
    def test_parity(self, gpu: Any, case: tuple[int, ...], bins: int, sigma: float) -> None:
        labels, offsets, boxes = random_maps(*case)
        gradients = images_of(labels, 2)
        got = gpu.gradient_histogram(gradients, labels, offsets, bins, sigma, boxes)
        assert (got.shape, got.dtype) == ((len(boxes), bins * bins), torch.float32)
        close(got, reference.gradient_histogram(gradients, labels, offsets, bins, sigma))

    def test_boxes_are_found_where_not_given_and_may_be_wider(self, gpu: Any) -> None:
        labels, offsets, boxes = random_maps(2, 9, 7, 3)
        gradients = images_of(labels, 2)
        expected = reference.gradient_histogram(gradients, labels, offsets, 8, 0.1)
        wider = boxes + torch.tensor([-20, -3, 40, 3])
        close(gpu.gradient_histogram(gradients, labels, offsets, 8, 0.1), expected)
        close(gpu.gradient_histogram(gradients, labels, offsets, 8, 0.1, wider.int()), expected)


    @pytest.mark.parametrize("bins", [1, 3, 4, 8, 16])
    @pytest.mark.parametrize("sigma", [0.0, 0.025, 0.05])
    def test_at_the_ends_of_cells_and_of_the_window(self, gpu: Any, bins: int, sigma: float) -> None:
        """Halves of cells, a little more, and values beyond [−1, 1], in one region that fills lists of gradients."""
        labels, offsets = torch.zeros(1, 20, 31, dtype=torch.int32), torch.tensor([0, 1])
        halves = torch.randint(-1, 2 * bins + 2, (1, 2, 20, 31), generator=torch.Generator().manual_seed(0))
        gradients = halves / bins - 1 + 1e-3 * (halves % 3 - 1)
        gradients[..., :5] = 0
        close(gpu.gradient_histogram(gradients, labels, offsets, bins, sigma),
              reference.gradient_histogram(gradients, labels, offsets, bins, sigma))

    @pytest.mark.parametrize("sigma", [0.025, 0.05, 2.0])
    def test_a_whole_photo(self, gpu: Any, photo: Callable[[str, int], Tensor], sigma: float) -> None:
        """One region of thousands of pixels. A GPU's products of matrices cut sums off: these must not add up."""
        labels, offsets = torch.zeros(1, 64, 64, dtype=torch.int32), torch.tensor([0, 1])
        gradients = reference.scharr(photo("astronaut", 64)[None])
        close(gpu.gradient_histogram(gradients, labels, offsets, 16, sigma),
              reference.gradient_histogram(gradients, labels, offsets, 16, sigma), rtol=1e-6)  # sums of 4,096 pixels
        close(gpu.position_histogram(labels, offsets, 16, sigma),
              reference.position_histogram(labels, offsets, 16, sigma), rtol=1e-6)

    def test_a_box_outside_the_image_is_empty(self, gpu: Any) -> None:
        labels, offsets = torch.zeros(1, 4, 5, dtype=torch.int32), torch.tensor([0, 1])
        for box in ([-9, -9, -2, -2], [-9, 1, -2, 3], [1, 7, 3, 9]):
            boxes = torch.tensor([box], dtype=torch.int32)
            assert not gpu.gradient_histogram(images_of(labels, 2), labels, offsets, 4, 0.1, boxes).any()
            assert not gpu.position_histogram(labels, offsets, 4, 0.1, boxes).any()


class TestRegionFeatures:
    TABLE = torch.linspace(-1, 1, 768).reshape(3, 256).flip(1)

    @pytest.mark.parametrize(("masked", "textured", "bins"), [(True, True, 16), (False, True, 3), (True, False, 5)])
    @pytest.mark.parametrize("whole", [True, False])
    def test_parity(self, gpu: Any, masked: bool, textured: bool, bins: int, whole: bool) -> None:
        labels, offsets, boxes = random_maps(5, 6, 9, 3)
        colors = images_of(labels)
        images, table = ((colors + 1) * 127).byte() if whole else colors, self.TABLE if whole else None
        gradients = images_of(labels, 2) if textured else None
        windows = boxes + torch.tensor([-2, 0, 1, 3], dtype=torch.int32)
        given = (images, table, gradients, labels, offsets, boxes, windows, 6, masked, (bins, 0.1), (4, 0.025))
        got, expected = gpu.region_features(*given), reference.region_features(*given)
        assert got.is_contiguous()
        assert expected.shape == (len(boxes), 3 * 36 + bins**2 + 16 * textured)
        close(got, expected)


class TestScharr:
    @pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 2, 1, 7), (2, 4, 7, 1), (2, 5, 2, 2), (2, 3, 23, 24)])
    @pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
    def test_parity(self, gpu: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        images = torch.rand(shape, generator=torch.Generator().manual_seed(3))
        images = (images * 255).to(torch.uint8) if dtype == torch.uint8 else images
        got = gpu.scharr(images)
        assert (got.shape, got.dtype) == ((shape[0], 2, *shape[2:]), torch.float32)
        close(got, reference.scharr(images))
        close(gpu.scharr(images.mT), reference.scharr(images.mT))


@pytest.mark.usefixtures("small_blocks")
def test_many_blocks(gpu: Any) -> None:
    labels, offsets, boxes = random_maps(2, 7, 9, 3)
    images = images_of(labels)
    wide = torch.rand(2, 3, 20, 40, generator=torch.Generator().manual_seed(4))
    close(gpu.scharr(wide), reference.scharr(wide))
    close(gpu.color_patches(images, labels, offsets, boxes, 7),
          reference.color_patches(images, labels, offsets, boxes, 7))


def test_inputs_are_never_modified(gpu: Any) -> None:
    labels, offsets, boxes = random_maps(2, 6, 5, 3)
    images = images_of(labels)
    given: tuple[Tensor, ...] = (images, labels, offsets, boxes)
    before = [tensor.clone() for tensor in given]
    calls: list[Callable[[], object]] = [
        lambda: gpu.color_patches(images, labels, offsets, boxes, 4),
        lambda: gpu.position_histogram(labels, offsets, 4, 0.1, boxes),
        lambda: gpu.gradient_histogram(images[:, :2], labels, offsets, 4, 0.1, boxes),
        lambda: gpu.scharr(images),
    ]
    for call in calls:
        call()
        assert all(map(torch.equal, given, before))


def test_features_in_half_precision(gpu: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 5, (2, 20, 17), generator=generator).int()
    offsets = torch.tensor([0, 5, 10])
    images = torch.rand(2, 3, 20, 17, generator=generator)
    boxes = reference.region_boxes(labels, offsets)
    given = (images, None, reference.scharr(images), labels, offsets, boxes, boxes, 16, True, (16, 0.1), (16, 0.025))
    got, expected = gpu.region_features(*given, torch.float16), reference.region_features(*given)
    assert got.dtype == torch.float16
    torch.testing.assert_close(got.float(), expected, rtol=2e-3, atol=1e-3)
