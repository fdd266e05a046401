import math

import pytest
import torch

import spit
from spit.features import FeatureExtractor
from spit.features.color import (
    CONTRAST_MEAN,
    CONTRAST_SHAPE,
    NORMALIZATIONS,
    color_features,
    contrast,
    kumaraswamy,
    squares,
    standardize,
    unchanged,
)

CHANNELS = list(zip(CONTRAST_MEAN, CONTRAST_SHAPE, strict=True))


@pytest.mark.parametrize(("mean", "shape"), CHANNELS)
def test_kumaraswamy_is_the_formula_of_appendix_b(mean: float, shape: float) -> None:
    b = -math.log(2) / math.log(1 - mean**shape)
    x = torch.linspace(0, 1, 256, dtype=torch.float64)
    expected = [1 - (1 - value**shape) ** b for value in x.tolist()]
    actual = kumaraswamy(x, mean, shape)
    assert actual.dtype == torch.float64
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)
    torch.testing.assert_close(kumaraswamy(x.float(), mean, shape), actual.float(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("mean", "shape"), CHANNELS)
def test_kumaraswamy_keeps_the_ends_and_takes_the_mean_to_a_half(
    mean: float, shape: float, dtype: torch.dtype
) -> None:
    answer = kumaraswamy(torch.tensor([0, mean, 1], dtype=dtype), mean, shape)
    assert answer.dtype == dtype
    assert answer[0] == 0
    assert answer[2] == 1
    assert answer[1].item() == pytest.approx(0.5, abs=1e-6)


def test_kumaraswamy_rises() -> None:
    x = torch.cat([torch.linspace(0, 1, 4096), torch.tensor([1 - 2**-24, 2**-24])]).sort().values
    assert (kumaraswamy(x, 0.456, 0.507).diff() >= 0).all()


def test_kumaraswamy_broadcasts_its_constants() -> None:
    x = torch.rand(256, generator=torch.Generator().manual_seed(0))
    means, shapes = (torch.tensor(values)[:, None] for values in (CONTRAST_MEAN, CONTRAST_SHAPE))
    table = kumaraswamy(x, means, shapes)
    assert table.shape == (3, 256)
    for row, (mean, shape) in zip(table, CHANNELS, strict=True):
        torch.testing.assert_close(row, kumaraswamy(x, mean, shape), rtol=0, atol=1e-6)


def test_kumaraswamy_has_finite_derivatives_everywhere() -> None:
    x = torch.tensor([0.0, 1e-30, 1 / 255, 0.5, 254 / 255, 1 - 2**-24, 1.0], requires_grad=True)
    for mean, shape in CHANNELS:
        (slope,) = torch.autograd.grad(kumaraswamy(x, mean, shape).sum(), x)
        assert slope.isfinite().all()
        assert (slope >= 0).all()
        assert (slope[2:] > 0).all()
    inner = torch.linspace(0.05, 0.95, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: kumaraswamy(t, 0.485, 0.539), (inner,))


@pytest.mark.parametrize("floating", [torch.float32, torch.float64])
def test_kumaraswamy_takes_what_lies_beyond_as_the_nearer_end(floating: torch.dtype) -> None:
    x = torch.tensor([-1e-4, -1e-30, 0.5, 1 + 2.4e-7, 1.0001], dtype=floating)
    leaf = x.clone().requires_grad_()
    for mean, shape in CHANNELS:
        answer = kumaraswamy(x, mean, shape)
        assert answer[[0, 1, 3, 4]].tolist() == [0, 0, 1, 1]
        assert torch.equal(kumaraswamy(leaf, mean, shape).detach(), answer)
        (slope,) = torch.autograd.grad(kumaraswamy(leaf, mean, shape).sum(), leaf)
        assert slope[[0, 1, 3, 4]].tolist() == [0, 0, 0, 0]
        assert slope[2] > 0


def test_kumaraswamy_has_the_same_values_with_and_without_derivatives() -> None:
    x = torch.linspace(0, 1, 256)
    assert torch.equal(kumaraswamy(x.clone().requires_grad_(), 0.485, 0.539).detach(), kumaraswamy(x, 0.485, 0.539))


def test_contrast_treats_each_channel_by_its_constants() -> None:
    images = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    answer = contrast(images)
    for c, (mean, shape) in enumerate(CHANNELS):
        torch.testing.assert_close(answer[:, c], 2 * kumaraswamy(images[:, c], mean, shape) - 1)
    ends = contrast(torch.tensor([0.0, 1.0]).view(1, 1, 1, 2).expand(1, 3, 1, 2))
    assert torch.equal(ends[0, 1, 0], torch.tensor([-1.0, 1.0]))


@pytest.mark.parametrize("channels", [1, 4])
def test_other_channel_counts_take_the_mean_constants(channels: int) -> None:
    images = torch.rand(1, channels, 4, 4, generator=torch.Generator().manual_seed(0))
    mean, shape = sum(CONTRAST_MEAN) / 3, sum(CONTRAST_SHAPE) / 3
    torch.testing.assert_close(contrast(images), 2 * kumaraswamy(images, mean, shape) - 1)
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


def test_unchanged() -> None:
    images = torch.rand(1, 3, 2, 2)
    assert unchanged(images) is images


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
    with pytest.raises(ValueError, match="expected fill to be one of zero, mean, image, got 'grey'"):
        FeatureExtractor(fill="grey")


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
