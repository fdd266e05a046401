from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import spit
from spit.contrast import contrast
from spit.features import FeatureExtractor
from spit.features.color import NORMALIZATIONS, color_features, standardize
from spit.kernels.windows import squares


@pytest.mark.parametrize("channels", [1, 4])
def test_other_channel_counts_take_the_mean_constants(channels: int) -> None:
    images = torch.rand(1, channels, 4, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(standardize(images), (images - (0.485 + 0.456 + 0.406) / 3) / (0.678 / 3))


def test_standardize_has_the_constants_of_imagenet() -> None:
    images = torch.tensor([0.485, 0.456 + 0.224, 0.406 - 0.225]).view(1, 3, 1, 1)
    torch.testing.assert_close(standardize(images).flatten(), torch.tensor([0.0, 1.0, -1.0]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_normalizations_keep_shape_and_dtype_and_leave_their_input(name: str) -> None:
    images = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    before = images.clone()
    answer = NORMALIZATIONS[name](images)
    assert answer.shape == images.shape
    assert answer.dtype == torch.float32
    assert torch.equal(images, before)


def test_no_normalization_returns_the_image_itself() -> None:
    images = torch.rand(1, 3, 2, 2)
    assert NORMALIZATIONS["none"](images) is images


def test_other_regions_are_masked_after_normalization() -> None:
    """Black becomes −1, another region 0: the two must differ."""
    labels = torch.tensor([[[0, 1], [0, 0]]]).int()
    boxes = torch.tensor([[0, 0, 2, 2], [0, 1, 1, 2]]).int()
    features = color_features(torch.zeros(1, 1, 2, 2), labels, torch.tensor([0, 2]), boxes, 2, "contrast")
    assert torch.equal(features[0], torch.tensor([-1.0, 0.0, -1.0, -1.0]))
    assert torch.equal(features[1], torch.full((4,), -1.0))


def test_features_are_flattened_channel_by_channel() -> None:
    images = torch.arange(12.0).view(1, 3, 2, 2) / 12
    labels = torch.zeros(1, 2, 2, dtype=torch.int32)
    features = color_features(images, labels, torch.tensor([0, 1]), torch.tensor([[0, 0, 2, 2]]).int(), 2, "none")
    assert torch.equal(features, images.view(1, 12))


def test_filled_a_region_has_no_outline() -> None:
    """An L of pixels at 10, 20 and 60 in a 2×2 box: the fourth is at their mean, 30, or as it is, 90, not at 0."""
    labels = torch.tensor([[[0, 0], [0, 1]]], dtype=torch.int32)
    image = torch.tensor([[[[10.0, 20.0], [60.0, 90.0]]]]) / 100
    offsets, boxes = torch.tensor([0, 2]), torch.tensor([[0, 0, 2, 2], [1, 1, 2, 2]], dtype=torch.int32)
    filled = color_features(image, labels, offsets, boxes, 2, "none", "mean")
    assert torch.allclose(filled, torch.tensor([[0.1, 0.2, 0.6, 0.3], [0.9, 0.9, 0.9, 0.9]]))
    whole = color_features(image, labels, offsets, boxes, 2, "none", "image")
    assert torch.allclose(whole, torch.tensor([[0.1, 0.2, 0.6, 0.9], [0.9, 0.9, 0.9, 0.9]]))


def test_filling_sees_nothing_of_other_regions_and_leaves_whole_boxes_alone() -> None:
    torch.manual_seed(0)
    image = torch.randint(0, 256, (1, 3, 32, 32), dtype=torch.uint8)
    other = image.clone()
    part = spit.VoronoiTokenizer(9)(image)
    mine = part.labels == 4
    other[:, :, ~mine[0]] = torch.randint(0, 256, (1, 3, int((~mine).sum())), dtype=torch.uint8)
    extract = FeatureExtractor(resolution=8, gradients=False, fill="mean")
    assert torch.equal(extract(image, part).values[4], extract(other, part).values[4])
    patches = spit.PatchTokenizer(8)(image)
    plain = FeatureExtractor(resolution=8, gradients=False)
    assert torch.allclose(extract(image, patches).values, plain(image, patches).values, atol=1e-6)
    assert not torch.allclose(extract(image, part).values, plain(image, part).values, atol=1e-3)
    with pytest.raises(ValueError, match="expected fill to be one of zero, mean, image, crop, got 'grey'"):
        FeatureExtractor(fill="grey")


def test_a_crop_is_around_the_centroid_and_reads_its_position_there() -> None:
    """By hand: a region of 3 × 4 pixels in 8 × 8, seen by 4 × 4 pixels; positions on 2 × 2 bins."""
    labels = torch.zeros(8, 8, dtype=torch.int64)
    labels[1:4, 2:6] = 1  # centroid (2, 3.5): the crop begins at (1, 2), its place is (0.125, 0.5) in bins
    image = torch.rand(1, 1, 8, 8)
    extract = FeatureExtractor(channels=1, resolution=4, position_bins=2, position_sigma=0.0, gradients=False,
                               normalization="none", fill="crop")
    values = extract(image, spit.Partition.from_labels(labels)).values[1]
    assert torch.allclose(values[:16].view(4, 4), image[0, 0, 1:5, 2:6])
    assert values[16:].tolist() == [0.4375, 0.4375, 0.0625, 0.0625]
    patches = spit.PatchTokenizer(4)(image)
    plain = FeatureExtractor(channels=1, resolution=4, position_bins=2, position_sigma=0.0, gradients=False,
                             normalization="none")
    assert torch.equal(extract(image, patches).values, plain(image, patches).values)


def test_the_square_around_a_box_stays_in_the_image_if_it_fits() -> None:
    """Boxes in 8 × 10 pixels: a tall one at the left edge, a wide one, a tall one at the right edge, a square."""
    boxes = torch.tensor([[0, 0, 4, 2], [3, 4, 6, 9], [0, 8, 8, 10], [2, 2, 5, 5]], dtype=torch.int32)
    expected = torch.tensor([[0, 0, 4, 4], [2, 4, 7, 9], [0, 2, 8, 10], [2, 2, 5, 5]], dtype=torch.int32)
    assert torch.equal(squares(boxes, 8, 10), expected)
    longer = torch.tensor([[0, 0, 2, 10]], dtype=torch.int32)
    assert torch.equal(squares(longer, 4, 10), torch.tensor([[0, 0, 10, 10]], dtype=torch.int32))


def test_unmasked_a_region_is_seen_with_what_surrounds_it() -> None:
    """Square patches are what they were; of cells, the picture in the square around each."""
    torch.manual_seed(0)
    image = torch.randint(0, 256, (1, 3, 48, 64), dtype=torch.uint8)
    unmasked = FeatureExtractor(resolution=16, gradients=False, normalization="none", fill="image")
    patches = spit.PatchTokenizer(16)(image)
    plain = FeatureExtractor(resolution=16, gradients=False, normalization="none")
    assert torch.equal(unmasked(image, patches).values, plain(image, patches).values)
    cells = spit.VoronoiTokenizer(12)(image)
    for row, (top, left, bottom, right) in enumerate(squares(cells.boxes(), 48, 64).tolist()):
        window = image[:, :, top:bottom, left:right].float() / 255
        expected = torch.nn.functional.interpolate(window, (16, 16), mode="bilinear", align_corners=False)
        assert torch.allclose(unmasked(image, cells).values[row, :768], expected.flatten(), atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")
@pytest.mark.parametrize("normalization", ["imagenet", "contrast"])
def test_float_images_on_a_gpu_are_recorded(normalization: str) -> None:
    """A CUDA graph cannot record a copy from the host, such as that of the constants."""
    model = spit.create_model("spit_tiny_16", depth=1, normalization=normalization).eval()
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = model(images)
        got = [model.cuda()(images.cuda()).cpu() for _ in range(3)]
    for each in got:
        torch.testing.assert_close(each, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("normalize", [standardize, contrast])
def test_constants_follow_dtype_and_channels(normalize: Callable[[Tensor], Tensor]) -> None:
    images = torch.rand(1, 3, 4, 4, dtype=torch.float64)
    for each in (images, images.float(), images[:, :1], images):
        assert normalize(each).dtype == each.dtype
    torch.testing.assert_close(normalize(images).float(), normalize(images.float()))
