from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch
from torch import Tensor

from spit import kernels
from spit.features import FeatureExtractor
from spit.features.color import color_features
from spit.partition import Partition

SMALL = FeatureExtractor(resolution=4, position_bins=5, gradient_bins=3, position_sigma=0.1, gradient_sigma=0.1)


def stripes(batch: int, height: int, width: int, thick: int = 3) -> Partition:
    """Diagonal bands, another shift for each image."""
    y, x = torch.arange(height)[:, None], torch.arange(width)
    labels = torch.stack([(y + x + b) // thick - b // thick for b in range(batch)]).int()
    return Partition.of(labels, labels.amax((1, 2)) + 1)


def photos(batch: int, height: int, width: int, channels: int = 3) -> Tensor:
    return torch.rand(batch, channels, height, width, generator=torch.Generator().manual_seed(height * width))


@pytest.mark.parametrize(
    ("extractor", "width"),
    [
        (FeatureExtractor(), 1280),
        (FeatureExtractor(gradients=False), 1024),
        (FeatureExtractor(channels=1, resolution=2, position_bins=3, gradient_bins=5), 4 + 9 + 25),
    ],
)
def test_width(extractor: FeatureExtractor, width: int) -> None:
    partition = stripes(2, 7, 9)
    assert extractor.width == width
    tokens = extractor(photos(2, 7, 9, extractor.channels), partition)
    assert tokens.values.shape == (int(partition.offsets[-1]), width)
    assert tokens.values.dtype == torch.float32
    assert torch.equal(tokens.offsets, partition.offsets)


def test_rows_are_color_then_position_then_gradient() -> None:
    images, partition = photos(2, 8, 11), stripes(2, 8, 11)
    (labels, offsets), = partition.packed_blocks()
    color, position, gradient = SMALL(images, partition).values.split([48, 25, 9], 1)
    assert torch.equal(color, color_features(images, labels, offsets, partition.boxes(), 4, "contrast"))
    assert torch.equal(position, kernels.position_histogram(labels, offsets, 5, 0.1))
    assert torch.equal(gradient, kernels.gradient_histogram(kernels.scharr(images), labels, offsets, 3, 0.1))


def test_an_image_has_the_same_features_alone_and_in_any_company() -> None:
    images, partition = photos(3, 8, 11), stripes(3, 8, 11)
    together = SMALL(images, partition).split()
    for b in range(3):
        assert torch.equal(SMALL(images[b], partition[b]).values, together[b])


def test_images_of_different_sizes() -> None:
    images = [photos(1, 8, 11)[0], photos(1, 5, 6)[0], photos(2, 5, 6)[1], photos(1, 1, 1)[0]]
    parts = [stripes(1, *image.shape[1:]) for image in images]
    pair = Partition.of(torch.cat([parts[1].blocks[0], parts[2].blocks[0]]), torch.cat([parts[1].counts] * 2))
    partition = Partition.cat([parts[0], pair, parts[3]])
    assert len(partition.blocks) == 3
    expected = torch.cat([SMALL(image, part).values for image, part in zip(images, parts, strict=True)])
    assert torch.equal(SMALL(images, partition).values, expected)


def test_a_partition_may_come_in_other_blocks_than_the_images() -> None:
    images, partition = photos(3, 8, 11), stripes(3, 8, 11)
    apart = Partition(tuple(partition.blocks[0].split(1)), partition.offsets)
    assert torch.equal(SMALL(images, apart).values, SMALL(images, partition).values)
    mixed = [(images[0] * 255).byte(), images[1], images[2]]  # two blocks by dtype, one of labels
    assert torch.equal(SMALL(mixed, partition).values[partition.offsets[1] :],
                       SMALL(images, partition).values[partition.offsets[1] :])


@pytest.mark.parametrize("normalization", ["contrast", "imagenet", "none"])
def test_bytes_and_floats_are_one_image(normalization: str) -> None:
    pixels = torch.randint(0, 256, (2, 3, 8, 11), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    extractor = FeatureExtractor(resolution=4, normalization=normalization)
    partition = stripes(2, 8, 11)
    torch.testing.assert_close(extractor(pixels, partition).values, extractor(pixels.float() / 255, partition).values,
                               rtol=1e-5, atol=1e-6)


def test_normalization_is_used() -> None:
    images, partition = photos(1, 8, 11), stripes(1, 8, 11)
    rows = [FeatureExtractor(normalization=name)(images, partition).values for name in ("contrast", "imagenet", "none")]
    assert not torch.allclose(rows[0], rows[1])
    assert not torch.allclose(rows[1], rows[2])
    assert rows[2].min() >= 0


def test_frames_are_sampled_instead_of_tight_boxes() -> None:
    images = photos(2, 3, 3) / 2 + 0.5
    labels = torch.zeros(2, 3, 3, dtype=torch.int32)
    frames = torch.tensor([[0, 0, 4, 4], [-1, -1, 3, 3]]).int()
    extractor = FeatureExtractor(resolution=4, gradients=False, normalization="none")
    framed = extractor(images, Partition.of(labels, torch.tensor([1, 1]), frames)).values[:, :48].view(2, 3, 4, 4)
    assert torch.equal(framed[0, :, :3, :3], images[0])
    assert torch.equal(framed[1, :, 1:, 1:], images[1])
    assert (framed[0, :, 3] == 0).all()
    assert (framed[1, :, :, 0] == 0).all()
    tight = extractor(images, Partition.of(labels, torch.tensor([1, 1]))).values[:, :48]
    assert (tight > 0).all()


def test_frames_of_each_block_stay_with_it() -> None:
    sizes = [(3, 3), (2, 4)]
    images = [photos(1, *size)[0] for size in sizes]
    frames = [torch.tensor([[0, 0, 4, width]]).int() for width in (4, 5)]
    parts = [Partition.of(torch.zeros(1, *size, dtype=torch.int32), torch.tensor([1]), frame)
             for size, frame in zip(sizes, frames, strict=True)]
    expected = torch.cat([SMALL(image, part).values for image, part in zip(images, parts, strict=True)])
    assert torch.equal(SMALL(images, Partition.cat(parts)).values, expected)


def test_backends_agree() -> None:
    images, partition = photos(2, 24, 31), stripes(2, 24, 31)
    rows = []
    for name in ("reference", "numba"):
        with kernels.backend(name):
            rows.append(FeatureExtractor()(images, partition).values)
    torch.testing.assert_close(rows[1], rows[0], rtol=0, atol=2e-6)


@pytest.mark.parametrize("backend", ["reference", "numba"])
def test_derivatives_with_respect_to_the_image_are_finite(backend: str) -> None:
    images = photos(2, 8, 11)
    images[:, :, :3], images[:, :, 5:] = 0, 1  # where the contrast curve has no finite slope
    images.requires_grad_()
    with kernels.backend(backend):
        FeatureExtractor()(images, stripes(2, 8, 11)).values.pow(2).sum().backward()  # 16×16: every pixel is sampled
    assert images.grad is not None
    assert images.grad.isfinite().all()
    assert (images.grad[:, :, 3:5] != 0).all()


def test_inputs_are_not_modified() -> None:
    images, partition = photos(2, 8, 11), stripes(2, 8, 11)
    before = images.clone(), partition.blocks[0].clone(), partition.offsets.clone()
    SMALL(images, partition)
    for now, then in zip((images, partition.blocks[0], partition.offsets), before, strict=True):
        assert torch.equal(now, then)


def test_in_inference_mode_and_under_autocast() -> None:
    images, partition = photos(2, 8, 11), stripes(2, 8, 11)
    expected = SMALL(images, partition).values
    with torch.inference_mode():
        assert torch.equal(SMALL(images, partition).values, expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(SMALL(images, partition).values, expected)


def test_half_precision_images_give_float32_features() -> None:
    images, partition = photos(1, 8, 11).half(), stripes(1, 8, 11)
    assert torch.equal(SMALL(images, partition).values, SMALL(images.float(), partition).values)


def test_extractors_compare_by_their_settings() -> None:
    assert FeatureExtractor() == FeatureExtractor(channels=3)
    assert FeatureExtractor() != FeatureExtractor(resolution=8)
    with pytest.raises(FrozenInstanceError):
        FeatureExtractor().resolution = 8  # type: ignore[misc]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"channels": 0}, ValueError, "channels of at least 1, got 0"),
        ({"resolution": -1}, ValueError, "resolution of at least 1, got -1"),
        ({"position_bins": 0}, ValueError, "position_bins of at least 1, got 0"),
        ({"gradient_bins": 0}, ValueError, "gradient_bins of at least 1, got 0"),
        ({"resolution": 16.0}, TypeError, "resolution to be a whole number, got 16.0"),
        ({"channels": True}, TypeError, "channels to be a whole number, got True"),
        ({"position_sigma": -0.1}, ValueError, "position_sigma of at least 0, got -0.1"),
        ({"gradient_sigma": float("nan")}, ValueError, "gradient_sigma of at least 0, got nan"),
        ({"position_sigma": float("inf")}, ValueError, "position_sigma below inf, got inf"),
        ({"normalization": "imagenette"}, ValueError, "one of contrast, imagenet, none, got 'imagenette'"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        FeatureExtractor(**settings)


@pytest.mark.parametrize(
    ("images", "partition", "message"),
    [
        (photos(1, 8, 11, 1), stripes(1, 8, 11), r"3 channels, got shape \(1, 1, 8, 11\).*channels=1"),
        (photos(2, 8, 11), stripes(1, 8, 11), "partition of 2 images, got one of 1"),
        (photos(1, 8, 11), stripes(1, 11, 8), "labels of 8×11 for image 0, got 11×8"),
        (photos(1, 8, 11) - 2, stripes(1, 8, 11), r"\[0, 1\]"),
        (photos(1, 8, 11).to("meta"), stripes(1, 8, 11), None),
    ],
)
def test_images_must_be_those_of_the_partition(images: Tensor, partition: Partition, message: str | None) -> None:
    if message is None:
        images, message = images.to(torch.uint8), "partition on meta, where the images are, got cpu"
    with pytest.raises(ValueError, match=message):
        SMALL(images, partition)


def test_only_colors_are_differentiable() -> None:
    images = photos(1, 6, 6).requires_grad_()
    color, rest = SMALL(images, stripes(1, 6, 6)).values.split([48, 34], 1)
    gradient, = torch.autograd.grad(color.sum(), images, retain_graph=True)
    assert gradient.abs().max() > 0
    assert not torch.autograd.grad(rest.sum(), images)[0].any()
