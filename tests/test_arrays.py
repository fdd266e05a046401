"""spit.superpixels, as a user of scikit-image meets it."""

import inspect
from typing import Any, Never

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage import color, data, img_as_float, img_as_uint, measure, segmentation

import spit
from spit.arrays import OPTIONS
from spit.evaluation.superpixels import compactness


def explained(image: np.ndarray, labels: np.ndarray) -> float:
    values = image.reshape(-1, image.shape[2]).astype(float)
    sizes = np.bincount(labels.ravel())
    sums = np.stack([np.bincount(labels.ravel(), band) for band in values.T], 1)
    means = sums / np.maximum(sizes, 1)[:, None]
    within = ((values - means[labels.ravel()]) ** 2).sum()
    return float(1 - within / ((values - values.mean(0)) ** 2).sum())


@pytest.mark.parametrize("n", [1, 7, 100, 600, 3000])
def test_so_many_as_asked_for(n: int) -> None:
    labels = spit.superpixels(data.chelsea(), n=n)
    assert labels.shape == (300, 451)
    assert labels.dtype == np.int32
    assert np.unique(labels).tolist() == list(range(1, n + 1))
    assert measure.label(labels, connectivity=1).max() == n


def test_regionprops_and_the_tools_of_scikit_image_take_them() -> None:
    image = data.coffee()
    labels = spit.superpixels(image, n=200)
    regions = measure.regionprops(labels, intensity_image=image)
    assert len(regions) == 200
    assert sum(region.area for region in regions) == labels.size
    assert color.label2rgb(labels, image, kind="avg", bg_label=-1).shape == image.shape
    assert segmentation.mark_boundaries(image, labels).shape == image.shape


def test_better_than_slic_at_the_same_count_and_better_refined() -> None:
    image = data.astronaut()
    slic = segmentation.slic(image, n_segments=300, start_label=1)
    count = len(np.unique(slic))
    ours, plain = spit.superpixels(image, n=count), spit.superpixels(image, n=count, refine=0)
    assert explained(image, ours) > explained(image, plain) > explained(image, slic)


def test_the_image_may_be_grey_or_float_or_bool_and_is_not_touched() -> None:
    image = data.camera()
    before = image.copy()
    labels = spit.superpixels(image, n=50)
    assert np.array_equal(image, before)
    assert np.array_equal(labels, spit.superpixels(img_as_float(image), n=50))
    assert np.array_equal(labels, spit.superpixels(image[..., None], n=50))
    assert spit.superpixels(image > 100, n=50).max() == 50
    assert spit.superpixels(img_as_uint(image), n=50).max() == 50
    assert np.array_equal(labels[:, ::-1] - 1, spit.superpixels(image, n=50, start_label=0)[:, ::-1])


@pytest.mark.parametrize(("name", "message"), [
    ("n_segments", "^expected n, got n_segments; slic's n_segments is n here$"),
    ("startlabel", r"or start_label, got startlabel; did you mean 'start_label'\?$"),
    ("sigma", "^expected n, compactness, min_size, .*, refine or start_label, got sigma; "
              "docs/tutorials/superpixels.md shows what they do$"),
])
def test_unknown_options(name: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        spit.superpixels(data.camera(), **{name: 100})
    signature = inspect.signature(spit.superpixels).parameters
    assert tuple(signature)[1:-1] == OPTIONS
    assert signature["unknown"].annotation is Never, "type checkers flag them"


@pytest.mark.parametrize("n", [2, 50, 600, 20_000])
def test_flat_areas_are_not_joined_across_edges(n: int) -> None:
    image = np.full((100, 200, 3), 255, np.uint8)
    image[30:70, 50:150] = (200, 30, 30)
    labels = spit.superpixels(image, n)
    assert np.unique(labels).tolist() == list(range(1, n + 1))
    assert explained(image, labels) == 1
    assert measure.label(labels, connectivity=1).max() == n


def squared_error(image: np.ndarray, labels: np.ndarray) -> float:
    return sum(float(((image[labels == v] - image[labels == v].mean(0)) ** 2).sum()) for v in np.unique(labels))


def test_noisy_quadrants_as_scikit_image_tests_slic() -> None:
    rng = np.random.default_rng(0)
    image = np.zeros((20, 21, 3))
    image[:10, :10, 0] = image[10:, :10, 1] = image[10:, 10:, 2] = 1
    image = np.clip(image + 0.01 * rng.normal(size=image.shape), 0, 1)
    for n in (4, 8):
        slic = segmentation.slic(image, n_segments=n, sigma=0, enforce_connectivity=False, start_label=0)
        labels = spit.superpixels(image, n)
        assert squared_error(image, labels) <= 1.1 * squared_error(image, slic) < 0.05, n
    assert spit.superpixels(image, 4)[[0, 0, -1, -1], [0, -1, 0, -1]].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("compactness", [0.1, 0.3, 10])
def test_flat_images_become_even_cells(compactness: float) -> None:
    labels = spit.superpixels(np.zeros((200, 200), np.uint8), 200, compactness=compactness)
    sizes = np.bincount(labels.ravel())[1:]
    assert (sizes.min() > 50, 180 < np.median(sizes) < 220, sizes.max() < 400) == (True, True, True), sizes


def test_a_disk_on_white_stands_alone_and_the_white_is_even() -> None:
    y, x = np.mgrid[:200, :200]
    disk = (y - 100) ** 2 + (x - 90) ** 2 < 50**2
    labels = spit.superpixels(np.where(disk, np.uint8(40), np.uint8(255)), 200)
    assert not set(labels[disk]) & set(labels[~disk])
    sizes = np.bincount(labels.ravel())[1:]
    assert sizes.max() < 3 * np.median(sizes)


def test_an_outlier_joins_nobody_until_few_regions_are_left() -> None:
    image = np.full((40, 40), 100, np.uint8)
    image[11, 17] = 255
    labels = spit.superpixels(image, 6)
    assert (labels == labels[11, 17]).sum() == 1


def test_compactness() -> None:
    image = data.chelsea()
    edges = [segmentation.find_boundaries(spit.superpixels(image, 300, compactness=value)).mean()
             for value in (0.1, 0.5, 2, 10)]
    assert edges == sorted(edges, reverse=True)
    assert edges[0] > 1.3 * edges[-1]
    even = np.bincount(spit.superpixels(image, 300, compactness=100, refine=0).ravel())[1:]
    assert even.max() < 3 * np.median(even)


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 1, 0)])
def test_moves_lower_the_error_of_positions_too_if_they_weigh_much(weights: tuple[int, ...]) -> None:
    image, value = data.chelsea(), 4
    places = np.moveaxis(np.indices(image.shape[:2]), 0, -1) * value
    features = np.concatenate([image * np.sqrt(3 * np.array(weights) / sum(weights)), places], -1)
    plain, moved = (spit.superpixels(image, 300, compactness=value, weights=weights, refine=sweeps)
                    for sweeps in (0, 5))
    assert 1 - explained(features, moved) < 0.95 * (1 - explained(features, plain))
    assert compactness(moved) > 1.1 * compactness(plain)


@pytest.mark.parametrize("refine", [0, 3])
def test_a_mask(refine: int) -> None:
    image, (y, x) = data.chelsea(), np.mgrid[:300, :451]
    mask = (y - 150) ** 2 + (x - 200) ** 2 < 120**2
    mask[:, 190:195] = False  # two pieces
    before = mask.copy()
    labels = spit.superpixels(image, 80, mask=mask, refine=refine)
    assert np.array_equal(mask, before)
    assert np.array_equal(labels > 0, mask)
    assert np.unique(labels).tolist() == list(range(81))
    assert measure.label(labels, background=0, connectivity=1).max() == 80
    assert spit.superpixels(image, 1, mask=mask, refine=refine).max() == 2, "a label for each piece"
    assert spit.superpixels(image, 80, mask=mask, refine=refine, start_label=5).min() == 4
    everything = spit.superpixels(image, 80, mask=np.ones(mask.shape, bool), refine=refine)
    assert np.array_equal(everything, spit.superpixels(image, 80, refine=refine))


@given(seed=st.integers(0, 10_000), n=st.integers(1, 60), min_size=st.integers(1, 12), refine=st.integers(0, 2),
       dense=st.floats(0.05, 1))
@settings(max_examples=1000)
def test_any_mask(seed: int, n: int, min_size: int, refine: int, dense: float) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random((12, 17)) < dense
    mask[3, 4] = True
    image = rng.integers(0, 256, (12, 17, 3), np.uint8)
    labels = spit.superpixels(image, n, mask=mask, min_size=min_size, refine=refine)
    pieces = measure.label(mask, connectivity=1)
    sizes, areas = np.bincount(labels.ravel())[1:], np.bincount(pieces.ravel())[1:]
    count = min(max(n, len(areas)), mask.sum() if min_size == 1 else most(image, mask, min_size))
    assert np.unique(labels[mask]).tolist() == list(range(1, count + 1))
    assert (labels[~mask] == 0).all()
    assert measure.label(labels, background=0, connectivity=1).max() == count
    piece_of = np.zeros(count, int)
    piece_of[labels[mask] - 1] = pieces[mask] - 1
    assert (sizes >= np.minimum(min_size, areas[piece_of])).all()


def most(image: np.ndarray, mask: np.ndarray, min_size: int) -> int:
    return int(spit.superpixels(image, image.size, mask=mask, min_size=min_size, refine=0).max())


def test_the_axis_of_the_channels() -> None:
    image = data.chelsea()[:60, :90]
    labels = spit.superpixels(image, 40)
    assert np.array_equal(labels, spit.superpixels(image, 40, channel_axis=-1))
    assert np.array_equal(labels, spit.superpixels(np.moveaxis(image, -1, 0), 40, channel_axis=0))
    assert np.array_equal(labels.T, spit.superpixels(image, 40).T)
    grey = image[..., 0]
    assert np.array_equal(spit.superpixels(grey, 40), spit.superpixels(grey, 40, channel_axis=None))
    with pytest.raises(ValueError, match="give channel_axis=0 for an image of 3 bands, or channel_axis=None"):
        spit.superpixels(np.moveaxis(image, -1, 0))


def bands_of(image: np.ndarray, count: int) -> np.ndarray:
    """As many bands, mixed of three and noisy, as counts of 12 bits."""
    rng = np.random.default_rng(0)
    mixed = image.astype(float) @ rng.dirichlet(np.ones(3), count).T
    return np.rint((mixed + rng.normal(0, 4, mixed.shape)).clip(0, 255) * 16).astype(np.uint16)


@pytest.mark.parametrize("count", [2, 5, 12, 200])
@pytest.mark.parametrize(("min_size", "refine"), [(1, 0), (12, 2)])
def test_bands(count: int, min_size: int, refine: int) -> None:
    image = bands_of(data.chelsea()[:60, :90], count)
    labels = spit.superpixels(image, 80, channel_axis=-1, min_size=min_size, refine=refine)
    assert np.unique(labels).tolist() == list(range(1, 81))
    assert np.bincount(labels.ravel())[1:].min() >= min_size
    assert measure.label(labels, connectivity=1).max() == 80
    assert np.array_equal(labels, spit.superpixels(np.moveaxis(image, -1, 0).astype(np.float32), 80, channel_axis=0,
                                                   min_size=min_size, refine=refine))


def test_the_number_of_equal_bands_is_nothing() -> None:
    grey = data.camera()[::8, ::8]
    labels = spit.superpixels(grey, 50, refine=0)
    for count in (2, 4, 30):
        assert np.array_equal(spit.superpixels(np.stack([grey] * count), 50, channel_axis=0, refine=0), labels)


def test_weights_of_bands() -> None:
    image = data.coffee()[::4, ::4]
    objects, noise = image[..., 0], np.random.default_rng(0).integers(0, 256, image.shape[:2], np.uint8)
    both = np.stack([objects, noise], -1)
    for refine in (0, 3):
        alone = spit.superpixels(objects, 60, refine=refine)
        assert np.array_equal(spit.superpixels(both, 60, weights=(1, 0), refine=refine), alone)
        assert not np.array_equal(spit.superpixels(both, 60, refine=refine), alone)
        assert np.array_equal(spit.superpixels(both, 60, weights=(3, 3), refine=refine),
                              spit.superpixels(both, 60, refine=refine))


@pytest.mark.parametrize("to", ["saturated", "raw", "lab"])
def test_spaces(to: str) -> None:
    image = data.coffee()[::4, ::4]
    labels = spit.superpixels(image, 60, to=to)  # type: ignore[arg-type]
    assert labels.max() == 60
    assert explained(image, labels) > 0.85
    assert np.array_equal(labels, spit.superpixels(image, 60)) == (to == "saturated")


@pytest.mark.parametrize("n", [1, 7, 60])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.uint16, np.float32])
def test_volumes(n: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    z, y, x = np.mgrid[:12, :20, :24]
    ball = 4 * (z - 6) ** 2 + (y - 10) ** 2 + (x - 8) ** 2 < 50
    volume = (1000 * ball + rng.integers(0, 99, z.shape)).astype(dtype)
    labels = spit.superpixels(volume, n, channel_axis=None)
    assert labels.shape == volume.shape
    assert labels.dtype == np.int32
    assert np.unique(labels).tolist() == list(range(1, n + 1))
    assert measure.label(labels, connectivity=1).max() == n
    large = spit.superpixels(volume, n, channel_axis=None, min_size=20)
    assert np.unique(large).tolist() == list(range(1, n + 1))
    assert np.bincount(large.ravel())[1:].min() >= 20
    bands = np.stack([volume, volume[::-1]], -1)
    assert measure.label(spit.superpixels(bands, n, channel_axis=-1), connectivity=1).max() == n


@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), min_size=st.integers(1, 9), dense=st.floats(0.1, 1))
@settings(max_examples=60)
def test_masks_in_volumes(seed: int, n: int, min_size: int, dense: float) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random((4, 6, 7)) < dense
    mask[2, 3, 3] = True
    volume = rng.normal(size=mask.shape)
    labels = spit.superpixels(volume, n, mask=mask, min_size=min_size, channel_axis=None)
    assert np.array_equal(labels > 0, mask)
    assert measure.label(labels, background=0, connectivity=1).max() == labels.max()
    pieces = measure.label(mask, connectivity=1).max()
    assert labels.max() == max(n, pieces) if min_size == 1 and n <= mask.sum() else labels.max() <= max(n, pieces)


def test_spacing() -> None:
    flat = np.zeros((24, 24, 24), np.uint8)
    labels = spit.superpixels(flat, 64, channel_axis=None, spacing=(4, 1, 1))
    boxes = [region.bbox for region in measure.regionprops(labels)]
    extents = np.mean([[box[axis + 3] - box[axis] for axis in range(3)] for box in boxes], 0)
    assert extents[0] < 0.5 * extents[1:].min()
    image = data.coffee()[::4, ::4]
    assert np.array_equal(spit.superpixels(image, 60), spit.superpixels(image, 60, spacing=(0.2, 0.2)))
    wide = spit.superpixels(np.zeros((60, 60), np.uint8), 36, spacing=(30, 10))
    assert np.array_equal(wide, spit.superpixels(np.zeros((60, 60), np.uint8), 36, spacing=(3e-6, 1e-6)))
    rows, columns = np.array([region.bbox[2:] for region in measure.regionprops(wide)]).T
    assert len(np.unique(rows)) > len(np.unique(columns))
    with pytest.raises(ValueError, match="spacing as 2 numbers of 0 or more, one per axis, got 3"):
        spit.superpixels(image, spacing=3)


@pytest.mark.parametrize("n", [1, 40, 400])
@pytest.mark.parametrize("refine", [0, 3])
def test_a_minimum_size(n: int, refine: int) -> None:
    image = data.chelsea()
    image[::9, ::7] = 255  # specks
    for size in (2, 20, 100):
        labels = spit.superpixels(image, n, min_size=size, refine=refine)
        assert np.unique(labels).tolist() == list(range(1, n + 1))
        assert np.bincount(labels.ravel())[1:].min() >= size
        assert measure.label(labels, connectivity=1).max() == n
    few = spit.superpixels(image, 10_000, min_size=1000, refine=refine)
    assert 40 < few.max() <= 135
    assert np.bincount(few.ravel())[1:].min() >= 1000


def test_a_dataarray_keeps_its_coordinates() -> None:
    xarray = pytest.importorskip("xarray")
    image = bands_of(data.chelsea()[:40, :50], 5)
    scene = xarray.DataArray(image, dims=("y", "x", "band"), name="reflectance", attrs={"units": "1"}, coords={
        "y": np.arange(40) * -30.0, "x": np.arange(50) * 30.0, "band": list("abcde"), "spatial_ref": 32633})
    right = spit.superpixels(image, 30, channel_axis=-1)
    for turned, axis in ((scene, -1), (scene.transpose("band", "y", "x"), 0)):
        labels: Any = spit.superpixels(turned, 30, channel_axis=axis)
        assert isinstance(labels, xarray.DataArray)
        assert labels.dims == ("y", "x")
        assert np.array_equal(labels.values, right)
        assert labels.dtype == np.int32
        assert set(labels.coords) == {"y", "x", "spatial_ref"}
        assert np.array_equal(labels.x, scene.x)
    grey: Any = spit.superpixels(scene[..., 0], 30, nodata=image[0, 0, 0])
    assert grey.dims == ("y", "x")
    assert grey.values[0, 0] == 0


def test_whatever_has_an_array() -> None:
    class Scan:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return data.camera()[::8, ::8]

    assert np.array_equal(spit.superpixels(Scan(), 20), spit.superpixels(data.camera()[::8, ::8], 20))


def test_no_more_than_there_are_pixels() -> None:
    assert spit.superpixels(np.zeros((2, 2), np.uint8), n=9).max() == 4
    assert spit.superpixels(data.coffee()[:50, :50], n=2000).max() == 2000


def test_a_read_only_array_is_enough() -> None:
    image = np.moveaxis(data.chelsea()[:40, :50], -1, 0).copy()
    image.setflags(write=False)
    for refine in (0, 2):
        assert spit.superpixels(image, 20, channel_axis=0, refine=refine).max() == 20
    assert spit.superpixels(image[0], 20, mask=image[1] > 60).flags.writeable


def test_a_view_and_its_copy_agree() -> None:
    image = data.chelsea()[::2, ::-3]
    assert np.array_equal(spit.superpixels(image, n=40), spit.superpixels(image.copy(), n=40))


@pytest.mark.parametrize(("image", "options", "message"), [
    (np.zeros(5, np.uint8), {}, r"shape \(H, W\) or \(H, W, C\), or a volume, got \(5,\)"),
    (np.zeros((4, 4, 3), np.uint8), {"n": 0}, "1 or more, got 0"),
    (np.zeros((4, 4, 3), np.uint8), {"n": 2.5}, "whole number of 1 or more, got 2.5"),
    (np.zeros((4, 4, 3), np.uint8), {"refine": -1}, "refine of at least 0, got -1"),
    (np.zeros((9, 4, 6), np.uint8), {"channel_axis": None, "refine": 1}, "refine=0 for a volume, got 1; boundary"),
    (np.zeros((4, 4, 3), np.uint8), {"min_size": 0}, "min_size as a whole number of 1 or more, got 0"),
    (np.zeros((4, 4, 3), np.uint8), {"min_size": 2.0}, "min_size as a whole number of 1 or more, got 2.0"),
    (np.zeros((4, 4, 3), np.uint8), {"weights": (1, 2)}, "weights as 3 numbers of 0 or more, one per band, got"),
    (np.zeros((4, 4, 3), np.uint8), {"weights": (1, 2, -1)}, r"one per band, got \(1, 2, -1\)"),
    (np.zeros((4, 4, 3), np.uint8), {"weights": (0, 0, 0)}, "a weight above 0"),
    (np.zeros((4, 4, 3), np.uint8), {"spacing": (0, 1)}, "spacing above 0, of at most 10,000 times"),
    (np.zeros((4, 4, 3), np.uint8), {"spacing": (np.nan, 1)}, "spacing as 2 numbers"),
    (np.zeros((4, 4, 3), np.uint8), {"compactness": -0.1}, "compactness of at least 0, got -0.1"),
    (np.zeros((4, 4, 3), np.uint8), {"mask": np.ones((3, 4), bool)}, r"mask of bool and shape \(4, 4\), got bool"),
    (np.zeros((4, 4, 3), np.uint8), {"mask": np.ones((4, 4))}, r"mask of bool and shape \(4, 4\), got float64"),
    (np.zeros((4, 4, 3), np.uint8), {"mask": np.zeros((4, 4), bool)}, "mask with at least one pixel"),
    (np.zeros((4, 4, 3), np.uint8), {"start_label": 1.5}, "start_label as a whole number, got 1.5"),
    ([], {}, r"at least one pixel and channel, got shape \(0,\)"),
    (np.zeros((0, 5, 3), np.uint8), {}, r"at least one pixel and channel, got shape \(0, 5, 3\)"),
    (np.full((4, 4, 3), np.nan), {}, "NaN"),
])
def test_errors(image: np.ndarray, options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spit.superpixels(image, **options)


@pytest.mark.parametrize(("image", "message"), [
    (np.zeros((4, 4, 3), complex), "bool, integers or floats, got complex128"),
    (torch.zeros(3, 4, 4), r"image.movedim\(0, -1\).numpy\(\)"),
    ("photo.jpg", "got the path 'photo.jpg'; read it"),
    (None, r"shape \(H, W\) or \(H, W, C\), got NoneType"),
])
def test_what_is_no_image_array(image: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        spit.superpixels(image)  # type: ignore[arg-type]
