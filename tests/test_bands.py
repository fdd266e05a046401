"""Arrays of any kind as integer planes."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from skimage import color, data, img_as_float

from spit.bands import SAMPLE, Bands, channels_first, eight_bits, raw_scale, sample
from spit.kernels.rules import COLOR_STEP, SCALE


def steps(bands: Bands) -> np.ndarray:
    """The planes in steps of 8 bits from black."""
    return (bands.planes.astype(float) + SCALE) / COLOR_STEP


def test_eight_bits_are_compared_as_they_are() -> None:
    grey, rng = data.camera()[:20, :30], np.random.default_rng(0)
    assert np.array_equal(steps(Bands.of(grey))[0], grey)
    assert np.array_equal(steps(Bands.of(img_as_float(grey)))[0], grey)
    assert sorted(np.unique(steps(Bands.of(grey > grey.min())))) == [0, 255]
    bands = rng.integers(0, 256, (7, 20, 30), np.uint8)
    assert np.array_equal(steps(Bands.of(bands, 0)), bands)
    fine = rng.random((7, 20, 30))
    assert np.abs(steps(Bands.of(fine, 0)) - 255 * fine).max() <= 0.5 / COLOR_STEP


def test_three_bands_are_more_saturated_but_not_for_refinement() -> None:
    image = data.chelsea()[:20, :30]
    bands = Bands.of(image)
    assert np.array_equal(bands.colors, np.moveaxis(image, -1, 0))
    spread = steps(bands).std(0) / np.maximum(image.std(-1), 1)
    assert 1.4 < np.median(spread) < 1.6
    assert np.array_equal(bands.planes, Bands.of(img_as_float(image)).planes)


@settings(max_examples=60)
@given(values=arrays(np.float64, array_shapes(min_dims=3, max_dims=4, max_side=7),
                     elements=st.floats(-1e300, 1e300, allow_subnormal=False)))
def test_raw_values_span_255_steps_from_percentile_to_percentile(values: np.ndarray) -> None:
    axis = 0
    bands = Bands.of(values, axis, to="raw")
    low, high = np.percentile(values.reshape(len(values), -1), (1, 99), axis=1)
    if not (high > low).any():
        low, high = values.reshape(len(values), -1).min(1), values.reshape(len(values), -1).max(1)
    span = (high - low).max() or 1.0
    right = np.clip((values - low.reshape(-1, *[1] * (values.ndim - 1))) / span, -1, 2) * 255
    assert np.abs(steps(bands) - right).max() <= 0.5001 / COLOR_STEP
    assert bands.mask is None


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16,
                                   np.float32, np.float64, np.longdouble, ">u2", ">f4"])
def test_every_type_with_the_same_values_gives_the_same_planes(dtype: Any) -> None:
    values = np.random.default_rng(0).integers(0, 100, (30, 40, 5))
    assert np.array_equal(Bands.of(values.astype(dtype), -1).planes, Bands.of(values, -1).planes)


def test_twelve_bits_in_sixteen_are_not_black() -> None:
    values = np.random.default_rng(0).integers(0, 4096, (60, 60), np.uint16)
    assert steps(Bands.of(values)).max() > 250
    assert np.array_equal(Bands.of(values).planes, Bands.of(values.astype(float)).planes)
    assert np.array_equal(Bands.of(values).planes, Bands.of(values.astype(float) * 2.0**40).planes)


def test_the_offset_of_a_band_is_nothing_and_its_contrast_is_kept() -> None:
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(0, 100, (2, 80, 80)) * np.array([1, 0.01])[:, None, None]
    planes = steps(Bands.of(np.stack([wide, narrow + 1e6]), 0))
    assert np.ptp(np.percentile(planes[0], (1, 99))) == pytest.approx(255, abs=0.2)
    assert np.ptp(np.percentile(planes[1], (1, 99))) == pytest.approx(2.55, rel=0.2)


def test_few_bright_pixels_on_a_flat_ground_keep_their_contrast() -> None:
    image = np.full((100, 100), 7.0)
    image[40:44, 40:44] = 5000
    assert sorted(np.unique(steps(Bands.of(image)))) == [0, 255]


def test_constant_images() -> None:
    for value in (0, 1, 7.5, -3e30):
        assert np.ptp(Bands.of(np.full((5, 6), value)).planes) == 0
        assert np.ptp(Bands.of(np.full((5, 6), value), to="raw").planes) == 0


def test_the_sample_is_a_grid_from_the_origin() -> None:
    image = np.arange(3000 * 1100, dtype=np.int64).reshape(1, 3000, 1100)
    assert np.array_equal(sample(image, None), image[:, ::2, ::2].reshape(1, -1))
    inside = image[0] % 7 == 0
    assert np.array_equal(sample(image, inside)[0], image[0, ::2, ::2][inside[::2, ::2]])
    hidden = np.zeros_like(inside)
    hidden[1, 1] = True
    assert sample(image, hidden).tolist() == [[1101]], "no pixel of the mask is on the grid"
    for shape in ((200, 90, 90), (1, 70, 300, 300), (12, 512, 512)):
        values = sample(np.zeros(shape, np.uint8), None)
        assert SAMPLE / 5 < values.size <= SAMPLE


def test_what_is_outside_has_no_say() -> None:
    image = np.random.default_rng(0).normal(size=(40, 50, 2))
    mask = np.ones((40, 50), bool)
    mask[:7] = mask[20:25, 20:25] = False
    for junk in (1e9, np.nan, np.inf):
        spoilt = np.where(mask[..., None], image, junk)
        bands = Bands.of(spoilt, mask=mask)
        assert bands.mask is not None
        assert np.array_equal(bands.mask, mask)
        assert np.array_equal(bands.planes[:, mask], Bands.of(image, mask=mask).planes[:, mask])
    assert np.array_equal(Bands.of(np.where(mask[..., None], image, np.nan), nodata=np.nan).planes[:, mask],
                          bands.planes[:, mask])
    rgb = np.random.default_rng(0).random((40, 50, 3), np.float32)
    for to in ("saturated", "lab"):
        spoilt = Bands.of(np.where(mask[..., None], rgb, np.nan), nodata=np.nan, to=to)  # type: ignore[arg-type]
        assert np.array_equal(spoilt.planes[:, mask], Bands.of(rgb, to=to).planes[:, mask])  # type: ignore[arg-type]
    unit = np.where(mask, np.abs(image[..., 0]) % 1, 7)
    assert np.array_equal(Bands.of(unit, mask=mask).planes[0, mask], np.rint(unit * 4080 - SCALE)[mask])


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_nodata_in_any_band(dtype: Any) -> None:
    image = np.random.default_rng(0).integers(1, 100, (20, 30, 3)).astype(dtype)
    image[3, 4] = 0
    image[5, 6, 1] = 0
    bands = Bands.of(image, nodata=0)
    assert bands.mask is not None
    assert np.argwhere(~bands.mask).tolist() == [[3, 4], [5, 6]]
    assert Bands.of(image, nodata=-9999).mask is None
    hidden = np.ma.masked_equal(image, 0)
    assert np.array_equal(Bands.of(hidden).mask, bands.mask)
    mask = np.ones((20, 30), bool)
    mask[0] = False
    both = Bands.of(image, nodata=0, mask=mask).mask
    assert both is not None
    assert both.sum() == 20 * 30 - 30 - 2
    assert mask.sum() == 19 * 30, "not modified"


def test_lab_is_that_of_scikit_image() -> None:
    image = data.astronaut()[::8, ::8]
    right = np.moveaxis(color.rgb2lab(image), -1, 0) * 2.55
    assert np.abs(steps(Bands.of(image, to="lab")) - right).max() <= 0.52 / COLOR_STEP
    assert np.array_equal(Bands.of(img_as_float(image), to="lab").planes, Bands.of(image, to="lab").planes)


def test_bytes() -> None:
    grey = data.camera()[:5]
    assert eight_bits(grey) is grey
    assert eight_bits(np.array([[False, True]])).tolist() == [[0, 255]]
    assert eight_bits(np.array([0, 128, 257, 65535], np.uint16)).tolist() == [0, 0, 1, 255]
    assert eight_bits(np.array([0, 0.5, 1.00001])).tolist() == [0, 128, 255]
    with pytest.raises(TypeError, match="got int32"):
        eight_bits(np.zeros(3, np.int32))


@pytest.mark.parametrize(("shape", "axis", "first"), [
    ((5, 6), "auto", (1, 5, 6)), ((5, 6, 4), "auto", (4, 5, 6)), ((5, 6, 1), "auto", (1, 5, 6)),
    ((3, 5, 4), "auto", (4, 3, 5)), ((5, 6, 7), None, (1, 5, 6, 7)), ((5, 6, 3), None, (1, 5, 6, 3)),
    ((5, 6, 7), 0, (5, 6, 7)), ((5, 6, 7), 1, (6, 5, 7)), ((5, 6, 7), -2, (6, 5, 7)), ((5, 6, 7), -1, (7, 5, 6)),
    ((5, 6, 7, 8), 0, (5, 6, 7, 8)), ((5, 6, 7, 8), -1, (8, 5, 6, 7)),
])
def test_axes(shape: tuple[int, ...], axis: Any, first: tuple[int, ...]) -> None:
    image = np.arange(np.prod(shape)).reshape(shape)
    bands = channels_first(image, axis)
    assert bands.shape == first
    assert np.shares_memory(bands, image)


@pytest.mark.parametrize(("shape", "message"), [
    ((12, 40, 60), "expected (H, W) or (H, W, 1 to 4), got (12, 40, 60); give channel_axis=0 for an image of 12 bands, "
                   "or channel_axis=None for a volume of one band"),
    ((40, 60, 12), "expected (H, W) or (H, W, 1 to 4), got (40, 60, 12); give channel_axis=-1 for an image of 12 "
                   "bands, or channel_axis=None for a volume of one band"),
    ((64, 64, 64), "expected (H, W) or (H, W, 1 to 4), got (64, 64, 64); give channel_axis=-1 for an image of 64 "
                   "bands, or channel_axis=None for a volume of one band"),
    ((2, 9, 40, 60), "expected (H, W) or (H, W, 1 to 4), got (2, 9, 40, 60); give channel_axis=0 for a volume of 2 "
                     "bands, or channel_axis=-1 for a volume of 60 bands"),
    ((9, 40, 60, 3), "expected (H, W) or (H, W, 1 to 4), got (9, 40, 60, 3); give channel_axis=-1 for a volume of 3 "
                     "bands, or channel_axis=0 for a volume of 9 bands"),
    ((9,), "expected an image of shape (H, W) or (H, W, C), or a volume, got (9,)"),
])
def test_a_doubtful_axis_is_refused_with_the_calls_that_would_be_right(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        channels_first(np.zeros(shape), "auto")
    if "give" in message:
        for axis in (None if word == "None" else int(word) for word in
                     [part.split(" ")[0] for part in message.split("channel_axis=")[1:]]):
            assert channels_first(np.zeros(shape), axis).ndim in (3, 4)


@pytest.mark.parametrize(("image", "options", "message"), [
    (np.zeros((4, 4)), {"channel_axis": -1}, r"or 3 of voxels beside channel_axis=-1, got shape \(4, 4"),
    (np.zeros((4, 4, 3)), {"channel_axis": 3}, "channel_axis as one of 3 axes, None or 'auto', got 3"),
    (np.zeros((4, 4, 3)), {"channel_axis": "last"}, "None or 'auto', got 'last'"),
    (np.zeros((2, 2, 2, 2)), {"channel_axis": None}, "beside channel_axis=None, got shape"),
    (np.zeros((4, 4)), {"mask": np.ones((4, 5), bool)}, r"mask of bool and shape \(4, 4\), got bool of shape \(4, 5\)"),
    (np.zeros((4, 4)), {"mask": np.zeros((4, 4), bool)}, "mask with at least one pixel"),
    (np.zeros((4, 4)), {"nodata": 0}, "at least one pixel with data in every band, got none"),
    (np.zeros((4, 4)), {"nodata": "none"}, "nodata as a number, got 'none'"),
    (np.full((4, 4), np.nan), {}, r"NaN or infinity in 16 places; give nodata=float\('nan'\), or a mask"),
    (np.array([[1, np.inf]]), {"nodata": np.nan}, "NaN or infinity in 1 place; give nodata"),
    (np.zeros((4, 4)), {"to": "hsv"}, "to to be one of saturated, raw, lab, got 'hsv'"),
    (np.zeros((4, 4)), {"to": "lab"}, "RGB image for to='lab', got 1 band; give to='raw'"),
    (np.full((4, 4), 7.0), {"to": "saturated"}, r"float images in \[0, 1\]"),
    (np.full((4, 4, 3), 7.0), {"to": "lab"}, r"float images in \[0, 1\]"),
])
def test_errors(image: np.ndarray, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bands.of(image, **options)


@pytest.mark.parametrize(("image", "options", "message"), [
    (np.zeros((4, 4, 3), np.uint16), {"to": "saturated"}, "got uint16; give to='raw', or divide by the largest value"),
    (np.zeros((4, 4), complex), {}, "image of bool, integers or floats, got complex128"),
    (np.array([["a"]]), {}, "image of bool, integers or floats, got <U1"),
])
def test_types(image: np.ndarray, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Bands.of(image, **options)


def test_the_scale_of_a_sample() -> None:
    low, span = raw_scale(np.array([np.arange(101.0), np.arange(101.0) / 2 + 9]))
    assert low.tolist() == [1, 9.5]
    assert span == 98
