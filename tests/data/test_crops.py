import numpy as np
import pytest
import torch
from PIL import Image

from spit.data.crops import central_square


def test_the_central_square_of_256_is_cut_and_not_resampled() -> None:
    image = torch.randint(0, 256, (3, 256, 256), dtype=torch.uint8)
    assert torch.equal(central_square(image, 224), image[:, 16:240, 16:240])


def test_the_central_square_is_pillows_resize_and_crop() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (300, 451, 3), dtype=np.uint8)
    resized = Image.fromarray(pixels).resize((384, 256), Image.Resampling.BICUBIC)  # int(256 · 451 / 300) = 384
    expected = np.asarray(resized.crop((80, 16, 304, 240)))
    square = central_square(torch.from_numpy(pixels).permute(2, 0, 1), 224)
    np.testing.assert_array_equal(square.permute(1, 2, 0).numpy(), expected)


@pytest.mark.parametrize("side", [64, 224])
def test_a_whole_image_is_rescaled_to_the_square(side: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (100, 151, 3), dtype=np.uint8)
    image = torch.from_numpy(pixels).permute(2, 0, 1)
    square = central_square(image, side, crop=None)
    expected = np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(square.permute(1, 2, 0).numpy(), expected)
    assert not torch.equal(square, central_square(image, side, crop=1.0))


@pytest.mark.parametrize("crop", [0.875, None])
@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 1), (1, 1_000_000), (3, 70)])
def test_any_shape_has_a_square(shape: tuple[int, int], crop: float | None) -> None:
    square = central_square(torch.zeros(3, *shape, dtype=torch.uint8), 224, crop)
    assert square.shape == (3, 224, 224)
    assert square.is_contiguous()
