"""Files and arrays of other libraries, read and written in windows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spit
from spit.errors import ImageError, MissingExtra
from spit.tiles import sources
from spit.tiles.sources import open_source

ORIGIN = (10.0, 0.0, 500_000.0, 0.0, -10.0, 4_000_000.0)


@pytest.fixture
def image() -> Any:
    return np.random.default_rng(0).integers(0, 256, (150, 140, 3)).astype(np.uint8)


def expected(image: Any, **options: Any) -> Any:
    return spit.superpixels(image, 40, refine=0, **options)


def test_npy_is_mapped(image: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", image)
    assert isinstance(open_source(tmp_path / "a.npy").array, np.memmap)
    path = spit.superpixels_tiled(str(tmp_path / "a.npy"), 40, tile=64, out=str(tmp_path / "b.npy"))
    assert path == tmp_path / "b.npy"
    np.testing.assert_array_equal(np.load(path), expected(image))


def test_masked_arrays(image: Any) -> None:
    hidden = np.ma.masked_array(image, image > 250)
    np.testing.assert_array_equal(spit.superpixels_tiled(hidden, 40, tile=64), expected(hidden))


def test_zarr(image: Any, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    array = zarr.open(str(tmp_path / "a.zarr"), mode="w", shape=image.shape, chunks=(50, 60, 3), dtype="uint8")
    array[:] = image
    for source in (array, tmp_path / "a.zarr"):
        path = spit.superpixels_tiled(source, 40, tile=64, out=tmp_path / "labels" / "b.zarr")
        np.testing.assert_array_equal(zarr.open(str(path), mode="r")[:], expected(image))
        with pytest.raises(ValueError, match=r"got the folder .*b\.zarr; remove it"):
            spit.superpixels_tiled(source, 40, out=path)
        path.rename(tmp_path / f"{len([*tmp_path.iterdir()])}.zarr")
    zarr.open_group(str(tmp_path / "group.zarr"), mode="w").create_array("0", shape=(3, 3), dtype="uint8")
    with pytest.raises(ImageError, match=r"got a group of 0; give one of them"):
        open_source(tmp_path / "group.zarr")


def test_dask(image: Any) -> None:
    dask = pytest.importorskip("dask.array")
    lazy = dask.from_array(image.astype(np.uint16), chunks=(40, 50, 3))
    np.testing.assert_array_equal(spit.superpixels_tiled(lazy, 40, tile=64), expected(image.astype(np.uint16)))


@pytest.mark.parametrize(("shape", "given", "axis"), [
    ((150, 140), {}, None), ((150, 140, 3), {"photometric": "rgb"}, -1),
    ((6, 90, 80), {"metadata": {"axes": "CYX"}}, 0), ((9, 40, 50), {"metadata": {"axes": "ZYX"}}, None),
    ((9, 2, 40, 50), {"metadata": {"axes": "ZCYX"}, "ome": True}, 1),
    ((150, 140, 3), {"photometric": "rgb", "tile": (64, 64), "compression": "zlib"}, -1),
])
def test_tiff_says_its_axes(shape: tuple[int, ...], given: dict[str, Any], axis: int | None, tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    pytest.importorskip("zarr")
    image = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", image, **given)
    path = spit.superpixels_tiled(tmp_path / "a.tif", 40, tile=64, out=tmp_path / "b.tif")
    np.testing.assert_array_equal(tifffile.imread(path), expected(image, channel_axis=axis))
    assert open_source(path).shape == tifffile.imread(path).shape


def test_pages_are_not_guessed(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    pytest.importorskip("zarr")
    image = np.random.default_rng(0).integers(0, 256, (12, 90, 80)).astype(np.uint8)
    tifffile.imwrite(tmp_path / "a.tif", image, photometric="minisblack")
    with pytest.raises(ValueError, match=r"give axes CYX .* for bands, or ZYX .* for a volume"):
        open_source(tmp_path / "a.tif")
    for axis, axes in ((0, "CYX"), (None, "ZYX")):
        assert open_source(tmp_path / "a.tif", axes=axes).channel_axis == axis
        labels = spit.superpixels_tiled(tmp_path / "a.tif", 40, tile=64, channel_axis=axis)
        np.testing.assert_array_equal(labels, expected(image, channel_axis=axis))
    for axes in ("YX", "CXY", "CCYX", "TYX"):
        with pytest.raises(ValueError, match=f"got {axes} for shape"):
            open_source(tmp_path / "a.tif", axes=axes)


def test_geotiff_keeps_its_place_and_nodata(tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    tifffile = pytest.importorskip("tifffile")
    pytest.importorskip("zarr")
    from rasterio.transform import Affine

    image = np.random.default_rng(0).integers(1, 4000, (4, 150, 140)).astype(np.uint16)
    image[:, :40, :50] = 0
    with rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", width=140, height=150, count=4, dtype="uint16",
                       nodata=0, crs="EPSG:32633", transform=Affine(*ORIGIN), tiled=True, blockxsize=64,
                       blockysize=64) as file:
        file.write(image)
    right = expected(image, channel_axis=0, nodata=0)
    with rasterio.open(tmp_path / "a.tif") as dataset:
        for source in (dataset, tmp_path / "a.tif"):
            path = spit.superpixels_tiled(source, 40, tile=64, out=tmp_path / "b.tif")
            with rasterio.open(path) as labels:
                np.testing.assert_array_equal(labels.read(1), right)
                assert (labels.crs, labels.transform, labels.nodata) == (dataset.crs, dataset.transform, 0)
        np.testing.assert_array_equal(spit.superpixels_tiled(dataset, 40, tile=64), right)
    assert tifffile.imread(path).dtype == np.int32


def test_a_sample_of_a_dataset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    monkeypatch.setattr("spit.bands.SAMPLE", 500)
    image = np.random.default_rng(0).integers(1, 4000, (2, 70, 90)).astype(np.uint16)
    with rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", width=90, height=70, count=2, dtype="uint16",
                       crs="EPSG:32633", transform=rasterio.transform.Affine(*ORIGIN)) as file:
        file.write(image)
    with rasterio.open(tmp_path / "a.tif") as dataset:
        np.testing.assert_array_equal(spit.superpixels_tiled(dataset, 40, tile=64), expected(image, channel_axis=0))


def test_files_that_cannot_be_read(image: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "a.npy", image)
    for name, told in (("text.npy", "expected a readable .npy"), ("nowhere.npy", "no such path"),
                       ("a.jpg", r"expected .npy, .tif, .tiff, .zarr, got .jpg")):
        with pytest.raises(ImageError, match=told):
            open_source(tmp_path / name)
    with pytest.raises(ValueError, match="another file than the image"):
        spit.superpixels_tiled(tmp_path / "a.npy", out=tmp_path / "a.npy")

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(sources, "import_module", missing)
    (tmp_path / "b.zarr").mkdir()
    with pytest.raises(MissingExtra, match=r"reading zarr needs zarr; .*\[large\]"):
        open_source(tmp_path / "b.zarr")
    with pytest.raises(MissingExtra, match=r"writing TIFF needs tifffile"):
        spit.superpixels_tiled(tmp_path / "a.npy", out=tmp_path / "b.tif")


def test_tiff_that_is_damaged(tmp_path: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    pytest.importorskip("zarr")
    (tmp_path / "a.tif").write_bytes(b"II*\0 and no more")
    with pytest.raises(ImageError, match=r"expected a readable \.tif"):
        open_source(tmp_path / "a.tif")
    image = np.random.default_rng(0).integers(0, 256, (90, 80)).astype(np.uint8)
    tifffile.imwrite(tmp_path / "b.tif", image)
    assert isinstance(open_source(tmp_path / "b.tif").array, np.memmap)
    tifffile.imwrite(tmp_path / "c.tif", image, compression="zlib")
    for name, told in (("b.tif", "expected a readable .tif"), ("c.tif", "its data is damaged")):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-900])
        with pytest.raises(ImageError, match=told):
            spit.superpixels_tiled(path, 40)
