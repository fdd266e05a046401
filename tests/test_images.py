import re

import numpy as np
import pytest
import torch
from PIL import Image

from spit.images import image_blocks, quantize, to_float


def test_a_batch_is_one_block_and_is_not_copied() -> None:
    images = torch.zeros(2, 3, 4, 5, dtype=torch.uint8)
    (block,) = image_blocks(images)
    assert block.data_ptr() == images.data_ptr()
    assert block.shape == (2, 3, 4, 5)


def test_one_image_is_a_batch_of_one() -> None:
    (block,) = image_blocks(torch.zeros(3, 4, 5))
    assert block.shape == (1, 3, 4, 5)


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_is_cut_into_runs_of_one_size_in_order(kind: type) -> None:
    sizes = [(4, 4), (4, 4), (2, 6), (4, 4), (6, 2)]
    images = kind(torch.full((3, *size), i / 10) for i, size in enumerate(sizes))
    blocks = image_blocks(images)
    assert [tuple(block.shape) for block in blocks] == [(2, 3, 4, 4), (1, 3, 2, 6), (1, 3, 4, 4), (1, 3, 6, 2)]
    assert torch.cat([block[:, 0, 0, 0] for block in blocks]).tolist() == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])


def test_a_change_of_dtype_or_channels_starts_a_new_block() -> None:
    images = [torch.zeros(3, 4, 4), torch.zeros(3, 4, 4, dtype=torch.uint8), torch.zeros(1, 4, 4, dtype=torch.uint8)]
    assert [(block.dtype, block.shape[1]) for block in image_blocks(images)] == [
        (torch.float32, 3), (torch.uint8, 3), (torch.uint8, 1)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_quantize_finds_every_8_bit_value_again(dtype: torch.dtype) -> None:
    values = torch.arange(256).reshape(1, 1, 16, 16)
    assert torch.equal(quantize((values.double() / 255).to(dtype)), values.to(torch.uint8))


def test_quantize_rounds_to_the_nearest() -> None:
    assert quantize(torch.tensor([0.4, 0.6, 9.4, 9.6, 254.6]) / 255).tolist() == [0, 1, 9, 10, 255]


def test_quantize_keeps_uint8_and_leaves_floats_alone() -> None:
    image = torch.randint(0, 256, (1, 3, 4, 4), dtype=torch.uint8)
    assert quantize(image) is image
    floats = torch.rand(1, 3, 4, 4)
    before = floats.clone()
    quantize(floats)
    assert torch.equal(floats, before)


def test_to_float_is_the_inverse_of_quantize_and_differentiable() -> None:
    image = torch.arange(256, dtype=torch.uint8).reshape(1, 1, 16, 16)
    assert to_float(image).dtype == torch.float32
    assert to_float(image).max() == 1
    assert torch.equal(quantize(to_float(image)), image)
    floats = torch.rand(1, 3, 4, 4, dtype=torch.float64, requires_grad=True)
    to_float(floats).sum().backward()
    assert torch.equal(floats.grad, torch.ones_like(floats))


@pytest.mark.parametrize(("images", "error", "message"), [
    ("cat.jpg", TypeError, "got str; spit.load_image"),
    (b"jpeg", TypeError, "got bytes"),
    (np.zeros((3, 4, 4), np.uint8), TypeError, "(C, H, W) tensor, or a list of (C, H, W) tensors, got ndarray"),
    (np.zeros((8, 9, 3), np.uint8), TypeError, "torch.from_numpy(image), and .movedim(-1, -3)"),
    (np.zeros((8, 9), np.int64), TypeError, "image.astype('uint8')"),
    (Image.new("L", (8, 9)), TypeError, "got Image; convert it with torch.from_numpy(numpy.array(image.convert('RGB')))"
                                        ".movedim(-1, 0)"),
    ([Image.new("RGB", (8, 9))], TypeError, "torch.from_numpy(numpy.array(image.convert('RGB'))).movedim(-1, 0)"),
    ((image for image in torch.zeros(2, 3, 4, 4)), TypeError, "got generator"),
    (None, TypeError, "got NoneType"),
    ([np.zeros((3, 4, 4))], TypeError, "got ndarray"),
    (["cat.jpg"], TypeError, "got str; spit.load_image"),
    ([], ValueError, "empty list"),
    (torch.zeros(4), ValueError, "got (4,)"),
    (torch.zeros(4, 4), ValueError, "got (4, 4); add a channel with x[None]"),
    (torch.zeros(1, 1, 3, 4, 4), ValueError, "got (1, 1, 3, 4, 4)"),
    ([torch.zeros(4, 4)], ValueError, "got shape (4, 4); add a channel with x[None]"),
    ([torch.zeros(1, 3, 4, 4)], ValueError, "got shape (1, 3, 4, 4)"),
    (torch.zeros(0, 3, 4, 4), ValueError, "got shape (0, 3, 4, 4)"),
    (torch.zeros(2, 0, 4, 4), ValueError, "got shape (2, 0, 4, 4)"),
    (torch.zeros(2, 3, 0, 4), ValueError, "got shape (2, 3, 0, 4)"),
    ([torch.zeros(3, 4, 4), torch.zeros(3, 4, 0)], ValueError, "(1, 3, 4, 0)"),
    (torch.zeros(8, 9, 3), ValueError, "got (1, 8, 9, 3); call .movedim(-1, -3)"),
    (torch.zeros(2, 8, 9, 4, dtype=torch.uint8), ValueError, "channels first, (B, C, H, W), got (2, 8, 9, 4)"),
    (torch.zeros(3, 4, 4, dtype=torch.int64), TypeError, "got torch.int64"),
    (torch.zeros(3, 4, 4, dtype=torch.int8), TypeError, "got torch.int8"),
    (torch.zeros(3, 4, 4, dtype=torch.bool), TypeError, "got torch.bool"),
    (torch.zeros(3, 4, 4, dtype=torch.complex64), TypeError, "got torch.complex64"),
    (torch.full((3, 4, 4), torch.nan), ValueError, "nan to nan; look for NaN"),
    (torch.tensor([0.5, torch.nan, 0.5, 0.5]).reshape(1, 2, 2), ValueError, "nan"),
    (torch.tensor([0.5, torch.inf]).reshape(1, 1, 2), ValueError, "got values from 0.5 to inf"),
    (torch.tensor([-torch.inf, 0.5]).reshape(1, 1, 2), ValueError, "got values from -inf to 0.5"),
    (torch.tensor([-2.1, 2.6]).reshape(1, 1, 2), ValueError, "got values from -2.1 to 2.6; undo the normalisation: "),
    (torch.tensor([-1.0, 1.0]).reshape(1, 1, 2), ValueError, "undo the normalisation: x * std + mean"),
    (torch.tensor([0.0, 255.0]).reshape(1, 1, 2), ValueError, "got values from 0 to 255; divide by 255"),
    (torch.tensor([-3.5, 259.0]).reshape(1, 1, 2), ValueError, "divide by 255"),
    (torch.tensor([0.0, 65535.0]).reshape(1, 1, 2), ValueError, "got values from 0 to 65535; scale them"),
    (torch.tensor([0.0, 1.0002]).reshape(1, 1, 2), ValueError, "got values from 0 to 1.0002; call .clamp(0, 1) if"),
    (torch.tensor([-0.0002, 1.0]).reshape(1, 1, 2), ValueError, "got values from -0.0002 to 1; call .clamp(0, 1) if"),
    ([torch.zeros(3, 4, 4), torch.full((3, 4, 4), 1.5)], ValueError, "to 1.5"),
])
def test_errors_name_what_came(images: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        image_blocks(images)


def test_the_whole_unit_interval_is_welcome() -> None:
    image_blocks(torch.tensor([-0.0, 0.0, 1.0]).reshape(1, 1, 3))
    image_blocks(torch.rand(3, 4, 4, requires_grad=True))


@pytest.mark.parametrize("value", [-0.25, 1.25, -1.0, 2.0, 3.0, 255.0, 65535.0, torch.inf, torch.nan])
def test_no_way_back_clamps_away_the_image(value: float) -> None:
    """A clamp is right for an overshoot; of a normalised or an 8-bit image it leaves black and white."""
    with pytest.raises(ValueError, match="expected float images") as caught:
        image_blocks(torch.tensor([0.5, value]).reshape(1, 1, 2))
    assert ("clamp" in str(caught.value)) == (-0.25 <= value <= 1.25)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_strays_by_rounding_is_accepted_and_never_wraps_round(dtype: torch.dtype) -> None:
    eps = torch.finfo(dtype).eps
    images = torch.tensor([-9e-5, -eps, 1 + eps, 1.00009], dtype=dtype).view(1, 1, 4)
    before = images.clone()
    (block,) = image_blocks(images)
    assert quantize(block).flatten().tolist() == [0, 0, 255, 255]
    assert torch.equal(images, before)
    assert block.data_ptr() == images.data_ptr()


def test_quantize_clamps_any_excursion() -> None:
    assert quantize(torch.tensor([-3.0, -0.01, 1.01, 9.0])).tolist() == [0, 0, 255, 255]


@pytest.mark.parametrize("shape", [(4, 100, 3), (5, 9, 8), (1, 3, 3), (3, 4, 4)])
def test_few_channels_or_a_narrow_image_are_not_taken_for_channels_last(shape: tuple[int, ...]) -> None:
    assert image_blocks(torch.zeros(shape))[0].shape[1:] == shape


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_floats_of_8_bits_are_refused(dtype):
    with pytest.raises(TypeError, match=r"got torch.float8.*; convert with .float\(\)"):
        image_blocks(torch.zeros(1, 3, 4, 4).to(dtype))
