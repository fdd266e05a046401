"""spit.regions against scikit-image's regionprops_table."""

import csv
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from skimage import data, measure

import spit
from labels.maps import LABELS


@pytest.fixture(scope="module")
def coffee() -> tuple[np.ndarray, np.ndarray]:
    return data.coffee(), spit.superpixels(data.coffee(), n=300)


def test_as_regionprops_table(coffee: tuple[np.ndarray, np.ndarray]) -> None:
    image, labels = coffee
    names = {"label": "label", "area": "area", "bbox": "box", "centroid": "centroid", "intensity_mean": "mean",
             "intensity_std": "std"}
    expected = measure.regionprops_table(labels, image, properties=tuple(names))
    columns = spit.regions(labels, image).columns()
    for name, values in expected.items():
        stem, dash, place = name.partition("-")
        np.testing.assert_allclose(columns[names[stem] + dash + place], values, rtol=1e-12)


@given(LABELS)
def test_perimeters_and_neighbors_by_shifting(labels: np.ndarray) -> None:
    table = spit.regions(labels)
    padded = np.pad(labels, 1, constant_values=-1)
    around = [np.roll(padded, step, axis)[1:-1, 1:-1] for axis in (0, 1) for step in (-1, 1)]
    assert table["label"].tolist() == [label for label in np.unique(labels).tolist() if label != 0]
    for place, label in enumerate(table["label"]):
        mask = labels == label
        others = np.concatenate([other[mask] for other in around])
        assert table["perimeter"][place] == (others != label).sum()
        assert table["neighbors"][place] == len(set(others.tolist()) - {-1, 0, label})
        assert table["compactness"][place] == pytest.approx(4 * np.pi * mask.sum() / (others != label).sum() ** 2)


def test_volumes() -> None:
    labels = np.random.default_rng(0).integers(0, 5, (4, 5, 6))
    image = np.random.default_rng(1).random((4, 5, 6))
    columns = spit.regions(labels, image).columns()
    expected = measure.regionprops_table(labels, image, properties=("label", "area", "bbox", "centroid"))
    for name, values in expected.items():
        np.testing.assert_allclose(columns[name.replace("bbox", "box")], values)
    cube = spit.regions(np.ones((2, 2, 2), int))
    assert (cube["perimeter"].tolist(), cube["box"].tolist()) == ([24], [[0, 0, 0, 2, 2, 2]])
    assert cube["compactness"][0] == pytest.approx(np.pi / 6)
    assert spit.regions(np.arange(3).reshape(3, 1, 1), background=None)["neighbors"].tolist() == [1, 2, 1]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.int64, np.uint64])
def test_any_integers_in_any_memory(dtype: type) -> None:
    labels = np.random.default_rng(0).integers(0 if dtype is bool else 100, 2 if dtype is bool else 120, (12, 15))
    labels = labels.astype(dtype)
    labels.setflags(write=False)
    before = labels.copy()
    expected = spit.regions(np.ascontiguousarray(labels[::2, ::-3].astype(np.int64)))
    for name, values in spit.regions(labels[::2, ::-3]).items():
        np.testing.assert_array_equal(values, expected[name])
    assert np.array_equal(labels, before)


def test_labels_far_apart_and_other_backgrounds() -> None:
    labels = np.array([[-(2**62), 0, 2**62], [5, 5, -1]])
    assert spit.regions(labels)["label"].tolist() == [-(2**62), -1, 5, 2**62]
    assert spit.regions(labels, background=None)["area"].tolist() == [1, 1, 1, 2, 1]
    assert spit.regions(labels, background=5)["label"].tolist() == [-(2**62), -1, 0, 2**62]
    assert spit.regions(np.zeros((2, 2), int))["label"].tolist() == []


def test_bands_of_any_type() -> None:
    labels = np.array([[1, 1], [2, 2]])
    image = np.array([[[10_000, 5], [20_000, 5]], [[0, 1], [65_535, 1]]], np.uint16)
    table = spit.regions(labels, image)
    assert table["mean"].tolist() == [[15_000, 5], [32_767.5, 1]]
    assert table["std"].tolist() == [[5_000, 0], [32_767.5, 0]]
    assert spit.regions(labels, labels > 1)["mean"].tolist() == [[0], [1]]
    assert np.isnan(spit.regions(labels, np.array([[np.nan, 1], [2, 2.0]]))["mean"]).tolist() == [[True], [False]]
    assert spit.regions(labels, np.zeros((2, 2, 0)))["mean"].shape == (2, 0)


def test_tables(coffee: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    table = spit.regions(coffee[1], coffee[0])
    table.save(tmp_path / "out.csv")
    with pytest.raises(ValueError, match=r"out\.parquet: expected a \.csv file"):
        table.save(tmp_path / "out.parquet")
    header, *rows = csv.reader(io.StringIO((tmp_path / "out.csv").read_text()))
    assert header[:4] == ["label", "area", "box-0", "box-1"]
    assert [float(value) for value in rows[7]] == [float(column[7]) for column in table.columns().values()]
    pandas = pytest.importorskip("pandas")
    pandas.testing.assert_frame_equal(table.to_pandas(), pandas.read_csv(tmp_path / "out.csv"), rtol=1e-14)


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(spit.MissingExtra, match=r"needs pandas; .*'spit-vit\[regions\]'"):
        spit.regions(np.ones((2, 2), int)).to_pandas()


@pytest.mark.parametrize(("labels", "image", "error", "message"), [
    (np.zeros((4, 4)), None, TypeError, "expected integer labels, got float64"),
    (np.zeros(4, int), None, ValueError, r"shape \(H, W\) or \(D, H, W\) with at least one pixel, got \(4,\)"),
    (np.zeros((4, 4), int), np.zeros((3, 4, 4)), ValueError, r"labels' shape \(4, 4\), .* last, got \(3, 4, 4\)"),
    (np.zeros((4, 4), int), np.zeros((4, 5)), ValueError, r"got \(4, 5\)"),
    (np.zeros((4, 4), int), np.zeros((4, 4), complex), TypeError, "real numbers, got complex128"),
])
def test_errors(labels: np.ndarray, image: np.ndarray | None, error: type[Exception], message: str) -> None:
    for function in (spit.regions, spit.adjacency):
        with pytest.raises(error, match=message):
            function(labels, image)
