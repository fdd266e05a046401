"""φ's kernels: every backend against formulas written again here, then against each other."""

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spit import kernels
from spit.kernels import reference
from spit.kernels import tensors as numba

BACKENDS = pytest.mark.parametrize("backend", [reference, numba], ids=["reference", "numba"])


def random_maps(seed: int, batch: int, height: int, width: int, regions: int) -> tuple[Tensor, Tensor, Tensor]:
    """Labels (regions scattered, not connected), offsets and tight boxes."""
    rng = np.random.default_rng(seed)
    labels, counts, boxes = [], [], []
    for _ in range(batch):
        values = rng.integers(0, regions, (height, width))
        names, dense = np.unique(values, return_inverse=True)
        dense = dense.reshape(height, width)
        for n in range(len(names)):
            ys, xs = np.nonzero(dense == n)
            boxes.append((ys.min(), xs.min(), ys.max() + 1, xs.max() + 1))
        labels.append(dense)
        counts.append(len(names))
    offsets = torch.tensor(np.concatenate([[0], np.cumsum(counts)]))
    return torch.tensor(np.stack(labels)).int(), offsets, torch.tensor(np.array(boxes)).int()


def random_images(seed: int, labels: Tensor, channels: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(len(labels), channels, *labels.shape[1:], generator=generator)


def dense_histogram(ys: list[float], xs: list[float], bins: int, sigma: float) -> np.ndarray:
    """The mean kernel of some points at the centres of K × K cells, one term at a time in float64."""
    histogram = np.zeros((bins, bins))
    for y, x in zip(ys, xs, strict=True):
        for i in range(bins):
            for j in range(bins):
                dy, dx = -1 + (2 * i + 1) / bins - y, -1 + (2 * j + 1) / bins - x
                histogram[i, j] += math.exp(-(dy * dy + dx * dx) / (2 * sigma * sigma))
    return histogram.flatten() / len(ys)


def interpolated_box(image: Tensor, labels: Tensor, label: int, box: list[int], resolution: int) -> Tensor:
    """``F.interpolate`` of the masked image, cut to the box with zeros beyond the image."""
    y0, x0, y1, x1 = box
    height, width = labels.shape
    masked = image * (labels == label)
    masked = F.pad(masked, (max(0, -x0), max(0, x1 - width), max(0, -y0), max(0, y1 - height)))
    top, left = y0 + max(0, -y0), x0 + max(0, -x0)
    crop = masked[:, top : top + y1 - y0, left : left + x1 - x0]
    return F.interpolate(crop[None], (resolution, resolution), mode="bilinear", align_corners=False)[0]


maps = st.builds(
    random_maps,
    seed=st.integers(0, 10_000),
    batch=st.integers(1, 3),
    height=st.sampled_from([1, 2, 3, 5, 8, 13]),
    width=st.sampled_from([1, 2, 4, 7, 12]),
    regions=st.integers(1, 6),
)
sigmas = st.sampled_from([0.0, 0.001, 0.025, 0.05, 0.3, 2.0])


class TestColorPatches:
    @BACKENDS
    @pytest.mark.parametrize("resolution", [1, 3, 16])
    def test_equals_interpolate_of_the_masked_box(self, backend: ModuleType, resolution: int) -> None:
        labels, offsets, boxes = random_maps(0, 2, 9, 13, 5)
        images = random_images(1, labels).double()
        patches = backend.color_patches(images, labels, offsets, boxes, resolution)
        assert patches.shape == (int(offsets[-1]), 3, resolution, resolution)
        for b in range(2):
            for row in range(int(offsets[b]), int(offsets[b + 1])):
                label = row - int(offsets[b])
                expected = interpolated_box(images[b], labels[b], label, boxes[row].tolist(), resolution)
                torch.testing.assert_close(patches[row], expected, rtol=0, atol=1e-12)

    @BACKENDS
    def test_unmasked_equals_interpolate_of_the_box(self, backend: ModuleType) -> None:
        labels, offsets, boxes = random_maps(0, 2, 9, 13, 5)
        images = random_images(1, labels).double()
        patches = backend.color_patches(images, labels, offsets, boxes, 4, masked=False)
        alone = torch.zeros_like(labels[0])  # one region all over the image
        for row, box in enumerate(boxes.tolist()):
            expected = interpolated_box(images[int(row >= offsets[1])], alone, 0, box, 4)
            torch.testing.assert_close(patches[row], expected, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("resolution", [4, 5])
    def test_boxes_beyond_the_image_are_padded_with_zeros(self, backend: Any, resolution: int) -> None:
        labels = torch.zeros(1, 3, 5, dtype=torch.int32)
        images = random_images(2, labels) + 1  # nothing in the image is near 0
        box = [-2, -1, 4, 7]
        patches = backend.color_patches(images, labels, torch.tensor([0, 1]), torch.tensor([box]).int(), resolution)
        torch.testing.assert_close(patches[0], interpolated_box(images[0], labels[0], 0, box, resolution))
        assert (patches[0, :, 0, 0] == 0).all()

    def test_copies_a_box_of_the_same_size_bit_for_bit(self, backend: Any) -> None:
        labels = torch.zeros(1, 7, 7, dtype=torch.int32)
        images = random_images(3, labels)
        boxes = torch.tensor([[0, 0, 7, 7]]).int()
        assert torch.equal(backend.color_patches(images, labels, torch.tensor([0, 1]), boxes, 7), images)

    def test_one_pixel_fills_its_patch(self, backend: Any) -> None:
        labels = torch.tensor([[[0, 1], [0, 0]]]).int()
        images = random_images(4, labels, channels=1)
        boxes = torch.tensor([[0, 0, 2, 2], [0, 1, 1, 2]]).int()
        patches = backend.color_patches(images, labels, torch.tensor([0, 2]), boxes, 3)
        torch.testing.assert_close(patches[1], images[0, :, :1, 1:].expand(1, 3, 3), rtol=0, atol=1e-6)

    @settings(deadline=None, max_examples=40)
    @given(maps, st.integers(1, 9), st.sampled_from([1, 3, 4]), st.integers(0, 100), st.booleans())
    def test_backends_agree(
        self, packed: tuple[Tensor, Tensor, Tensor], resolution: int, channels: int, seed: int, masked: bool
    ) -> None:
        labels, offsets, boxes = packed
        grow = torch.randint(0, 4, boxes.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.int32)
        boxes = boxes + grow * torch.tensor([-1, -1, 1, 1], dtype=torch.int32)
        images = random_images(seed, labels, channels)
        expected = reference.color_patches(images, labels, offsets, boxes, resolution, masked)
        actual = numba.color_patches(images, labels, offsets, boxes, resolution, masked)
        assert torch.equal(actual, expected)

    @pytest.mark.parametrize("masked", [True, False])
    def test_gradcheck(self, masked: bool) -> None:
        labels, offsets, boxes = random_maps(5, 2, 4, 5, 3)
        boxes[0] += torch.tensor([-1, 0, 1, 2], dtype=torch.int32)
        images = random_images(6, labels, channels=2).double().requires_grad_()
        assert torch.autograd.gradcheck(
            lambda x: kernels.color_patches(x, labels, offsets, boxes, 3, masked), (images,))

    def test_strided_input(self, backend: Any) -> None:
        labels, offsets, boxes = random_maps(9, 2, 6, 8, 4)
        images = random_images(10, labels)
        strided = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        label_view = torch.stack([labels, labels], -1)[..., 0]
        assert not strided.is_contiguous()
        assert not label_view.is_contiguous()
        expected = backend.color_patches(images, labels, offsets, boxes, 5)
        assert torch.equal(backend.color_patches(strided, label_view, offsets, boxes, 5), expected)


class TestPositionHistogram:
    @BACKENDS
    @pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 6), (5, 3), (4, 7)])
    @pytest.mark.parametrize("sigma", [0.025, 0.05, 0.5])
    def test_equals_the_formula(self, backend: ModuleType, height: int, width: int, sigma: float) -> None:
        labels, offsets, _ = random_maps(height, 2, height, width, 3)
        histogram = backend.position_histogram(labels, offsets, 4, sigma)
        longest = max(height, width)
        for b in range(2):
            for label in range(int(offsets[b + 1] - offsets[b])):
                ys, xs = np.nonzero(labels[b].numpy() == label)
                expected = dense_histogram(
                    [(2 * y + 1 - height) / longest for y in ys], [(2 * x + 1 - width) / longest for x in xs], 4, sigma
                )
                np.testing.assert_allclose(histogram[offsets[b] + label], expected, rtol=0, atol=1e-6)

    @pytest.mark.parametrize(("side", "bins"), [(6, 3), (7, 3), (3, 7), (100, 6)])
    def test_sigma_zero_counts_pixels_in_cells(self, backend: Any, side: int, bins: int) -> None:
        labels = torch.zeros(1, side, side, dtype=torch.int32)
        counts = torch.zeros(bins, bins)
        for y in range(side):
            for x in range(side):
                counts[(2 * y + 1) * bins // (2 * side), (2 * x + 1) * bins // (2 * side)] += 1
        histogram = backend.position_histogram(labels, torch.tensor([0, 1]), bins, 0.0)
        torch.testing.assert_close(histogram[0], counts.flatten() / side**2, rtol=1e-6, atol=0)

    @settings(deadline=None, max_examples=40)
    @given(maps, st.integers(1, 17), sigmas)
    def test_backends_agree(self, packed: tuple[Tensor, Tensor, Tensor], bins: int, sigma: float) -> None:
        labels, offsets, _ = packed
        expected = reference.position_histogram(labels, offsets, bins, sigma)
        actual = numba.position_histogram(labels, offsets, bins, sigma)
        assert actual.dtype == expected.dtype == torch.float32
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)

    @BACKENDS
    def test_one_region_of_a_large_image_stays_exact(self, backend: ModuleType) -> None:
        side, bins, sigma = 512, 16, 0.05
        labels = torch.zeros(1, side, side, dtype=torch.int32)
        places = (2 * np.arange(side) + 1 - side) / side
        centres = (2 * np.arange(bins) + 1) / bins - 1
        mean = np.exp(-((places[:, None] - centres) ** 2) / (2 * sigma**2)).mean(0)
        histogram = backend.position_histogram(labels, torch.tensor([0, 1]), bins, sigma)
        np.testing.assert_allclose(histogram[0].numpy(), np.outer(mean, mean).flatten(), rtol=1e-6)


class TestGradientHistogram:
    @BACKENDS
    @pytest.mark.parametrize("sigma", [0.025, 0.05, 0.5])
    def test_equals_the_formula(self, backend: ModuleType, sigma: float) -> None:
        labels, offsets, _ = random_maps(1, 2, 5, 6, 3)
        gradients = 2 * random_images(2, labels, channels=2) - 1
        histogram = backend.gradient_histogram(gradients, labels, offsets, 5, sigma)
        for b in range(2):
            for label in range(int(offsets[b + 1] - offsets[b])):
                inside = labels[b] == label
                expected = dense_histogram(
                    gradients[b, 0, inside].tolist(), gradients[b, 1, inside].tolist(), 5, sigma
                )
                np.testing.assert_allclose(histogram[offsets[b] + label], expected, rtol=0, atol=1e-6)

    def test_sigma_zero_counts_gradients_in_cells(self, backend: Any) -> None:
        dy = torch.tensor([-1.0, -0.6, 0.0, 0.2, 1.0])
        dx = torch.tensor([-1.0, 0.6, 0.0, 0.2, 1.0])
        labels = torch.tensor([[[0, 0, 1, 1, 0]]]).int()
        histogram = backend.gradient_histogram(
            torch.stack([dy, dx])[None, :, None], labels, torch.tensor([0, 2]), 4, 0.0
        )
        expected = torch.zeros(2, 4, 4)
        expected[0, 0, 0] = expected[0, 0, 3] = expected[0, 3, 3] = 1 / 3  # the ends belong to the outer cells
        expected[1, 2, 2] = 1  # a cell owns its lower end
        torch.testing.assert_close(histogram.view(2, 4, 4), expected)

    @settings(deadline=None, max_examples=40)
    @given(maps, st.integers(1, 17), sigmas, st.integers(0, 100))
    def test_backends_agree(self, packed: tuple[Tensor, Tensor, Tensor], bins: int, sigma: float, seed: int) -> None:
        labels, offsets, _ = packed
        gradients = (3 * random_images(seed, labels, channels=2) - 1.5).clamp(-1, 1)  # many at the very ends
        expected = reference.gradient_histogram(gradients, labels, offsets, bins, sigma)
        actual = numba.gradient_histogram(gradients, labels, offsets, bins, sigma)
        assert actual.dtype == expected.dtype == torch.float32
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)

    @BACKENDS
    def test_a_large_region_stays_exact(self, backend: ModuleType) -> None:
        """Equal terms, added in float32, would drift by percents."""
        side, bins, sigma = 512, 4, 0.3
        labels = torch.zeros(1, side, side, dtype=torch.int32)
        gradients = torch.empty(1, 2, side, side)
        gradients[:, 0], gradients[:, 1] = 0.125, -0.375
        histogram = backend.gradient_histogram(gradients, labels, torch.tensor([0, 1]), bins, sigma)
        np.testing.assert_allclose(histogram[0], dense_histogram([0.125], [-0.375], bins, sigma), rtol=0, atol=1e-7)


class TestScharr:
    def test_equals_the_kernel_by_loops(self, backend: Any) -> None:
        images = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(0))
        gradients = backend.scharr(images)
        assert gradients.shape == (2, 2, 5, 7)
        smooth = {-1: 3 / 16, 0: 10 / 16, 1: 3 / 16}
        grey = images.double().mean(1).numpy()

        def at(b: int, y: int, x: int) -> float:
            return float(grey[b, min(max(y, 0), 4), min(max(x, 0), 6)])

        for b in range(2):
            for y in range(5):
                for x in range(7):
                    dy = sum(w * (at(b, y + 1, x + k) - at(b, y - 1, x + k)) for k, w in smooth.items())
                    dx = sum(w * (at(b, y + k, x + 1) - at(b, y + k, x - 1)) for k, w in smooth.items())
                    assert gradients[b, 0, y, x].item() == pytest.approx(dy, abs=1e-6)
                    assert gradients[b, 1, y, x].item() == pytest.approx(dx, abs=1e-6)

    def test_range_and_direction(self, backend: Any) -> None:
        step = torch.zeros(1, 3, 4, 4)
        step[..., 2:, :] = 1
        gradients = backend.scharr(step)
        assert torch.equal(gradients[0, 0, 1:3], torch.ones(2, 4))  # down a step from 0 to 1
        assert torch.equal(gradients[0, 1], torch.zeros(4, 4))
        assert torch.equal(backend.scharr(step.mT.contiguous())[0, 1], gradients[0, 0].mT)

    def test_a_flat_image_has_exactly_none(self, backend: Any) -> None:
        assert torch.equal(backend.scharr(torch.full((1, 3, 4, 5), 0.3)), torch.zeros(1, 2, 4, 5))

    @settings(deadline=None, max_examples=30)
    @given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(0, 100))
    def test_backends_agree(self, height: int, width: int, channels: int, seed: int) -> None:
        images = torch.rand(2, channels, height, width, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(numba.scharr(images), reference.scharr(images))
        eight_bits = (images * 255).to(torch.uint8)
        assert torch.equal(numba.scharr(eight_bits), reference.scharr(eight_bits))


def quarters(height: int, width: int) -> torch.Tensor:
    y, x = torch.arange(height)[:, None] * 2 // height, torch.arange(width) * 2 // width
    return (2 * y + x).int()[None]


def test_rows_come_before_columns() -> None:
    features = kernels.position_histogram(quarters(8, 8), torch.tensor([0, 4]), 2, 0.0)
    assert torch.equal(features, torch.eye(4))  # (top, left), (top, right), (bottom, left), (bottom, right)


def test_a_wide_image_keeps_its_aspect() -> None:
    """An image twice as wide as high covers y from −½ to ½: the middle two of four rows of cells."""
    labels = torch.zeros(1, 8, 16, dtype=torch.int32)
    features = kernels.position_histogram(labels, torch.tensor([0, 1]), 4, 0.0).view(4, 4)
    expected = torch.zeros(4, 4)
    expected[1:3] = 1 / 8
    torch.testing.assert_close(features, expected)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 16))
def test_empirical_histograms_sum_to_one(height: int, width: int, bins: int) -> None:
    labels = (torch.arange(height * width).view(1, height, width) % 3).int()
    count = int(labels.max()) + 1
    features = kernels.position_histogram(labels, torch.tensor([0, count]), bins, 0.0)
    torch.testing.assert_close(features.sum(1), torch.ones(count))


def test_mirrored_labels_give_mirrored_histograms() -> None:
    labels = (torch.rand(1, 9, 12, generator=torch.Generator().manual_seed(0)) > 0.5).int()
    offsets = torch.tensor([0, 2])
    here = kernels.position_histogram(labels, offsets, 6, 0.05).view(2, 6, 6)
    there = kernels.position_histogram(labels.flip(2), offsets, 6, 0.05).view(2, 6, 6)
    assert not torch.allclose(here, there, atol=1e-4)
    torch.testing.assert_close(there, here.flip(2), rtol=0, atol=1e-6)


def test_two_sizes_of_one_partition_agree() -> None:
    """Positions are relative: twice the pixels, nearly the same histogram."""
    small = kernels.position_histogram(quarters(64, 64), torch.tensor([0, 4]), 8, 0.1)
    large = kernels.position_histogram(quarters(128, 128), torch.tensor([0, 4]), 8, 0.1)
    torch.testing.assert_close(large, small, rtol=0, atol=2e-3)
    assert small.max() > 0.05


ONE = torch.tensor([0, 1])


def one_region(images: torch.Tensor) -> torch.Tensor:
    return torch.zeros(len(images), *images.shape[2:], dtype=torch.int32)


def texture(images: torch.Tensor, labels: torch.Tensor, offsets: torch.Tensor, bins: int, sigma: float) -> torch.Tensor:
    return kernels.gradient_histogram(kernels.scharr(images), labels, offsets, bins, sigma)


def test_a_ramp_falls_into_one_cell() -> None:
    """Up by 0.2 a column: ∇x = 0.4 inside, and 0.2 at the two ends where the border is repeated."""
    ramp = (torch.arange(5.0) * 0.2).expand(1, 3, 4, 5)
    features = texture(ramp, one_region(ramp), ONE, 20, 0.0).view(20, 20)
    assert features[10].count_nonzero() == 2  # ∇y = 0 lies at the lower end of cell 10
    assert features.count_nonzero() == 2
    torch.testing.assert_close(features[10, 13:15].sum(), torch.tensor(0.6), rtol=0, atol=1e-6)
    torch.testing.assert_close(features[10, 11:13].sum(), torch.tensor(0.4), rtol=0, atol=1e-6)


def test_a_transposed_image_gives_a_transposed_histogram() -> None:
    images = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    here = texture(images, one_region(images), ONE, 8, 0.1).view(8, 8)
    there = texture(images.mT.contiguous(), one_region(images), ONE, 8, 0.1).view(8, 8)
    assert not torch.allclose(here, there, atol=1e-4)
    torch.testing.assert_close(there, here.mT, rtol=0, atol=1e-5)


def test_a_brighter_image_has_the_same_texture() -> None:
    images = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)) / 2
    here = texture(images, one_region(images), ONE, 8, 0.1)
    there = texture(images + 0.5, one_region(images), ONE, 8, 0.1)
    assert here.max() > 0.01
    torch.testing.assert_close(there, here, rtol=0, atol=1e-5)
