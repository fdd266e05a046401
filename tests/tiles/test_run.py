"""Tiles give the labels of the whole image, bit for bit."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import spit
from spit.tiles import run
from spit.tiles.parts import Parts

Photo = Callable[[str, int], Tensor]
Texture = Callable[[int, tuple[int, ...], int, int], Tensor]


def assert_tiles_change_nothing(image: Any, n: int, tiles: tuple[int, ...], **options: Any) -> None:
    whole = spit.superpixels(image, n, refine=0, **options)
    for tile in tiles:
        labels = spit.superpixels_tiled(image, n, tile=tile, **options)
        assert labels.dtype == whole.dtype == np.int32
        np.testing.assert_array_equal(labels, whole)


@pytest.mark.usefixtures("torch_threads")
@pytest.mark.parametrize("n", [1, 600, 4000])
def test_tiles_of_256_and_512_and_the_whole_agree(photo: Photo, n: int) -> None:
    image = photo("astronaut", 512)[:, :400].movedim(0, -1).numpy()
    assert_tiles_change_nothing(image, n, (256, 512))


@settings(max_examples=60)
@given(seed=st.integers(0, 100_000), height=st.integers(1, 150), width=st.integers(1, 150), n=st.integers(1, 30_000),
       compactness=st.sampled_from([0.0, 0.3, 10.0]), dense=st.none() | st.floats(0.01, 1))
def test_textures_and_masks(texture: Texture, seed: int, height: int, width: int, n: int, compactness: float,
                            dense: float | None) -> None:
    """Counts go from one for each piece of the mask to one for each pixel, through merges within blocks."""
    image = texture(seed, (1, 3, height, width), 0, 255)[0].movedim(0, -1).numpy().astype(np.uint8)
    mask = None if dense is None else np.random.default_rng(seed).random((height, width)) < dense
    if mask is not None:
        mask[0, 0] = True
    assert_tiles_change_nothing(image, n, (64, 128), compactness=compactness, mask=mask)


@pytest.mark.parametrize(("kind", "options"), [
    (np.uint16, {}), (np.int32, {}), (np.float32, {"to": "raw"}), (np.float64, {"to": "raw", "nodata": float("nan")}),
    (np.uint16, {"nodata": 7, "weights": (1, 0, 2, 1, 1)}), (np.float64, {"to": "saturated", "scaled": 1 / 4000}),
])
def test_bands_of_any_kind(kind: type, options: dict[str, Any]) -> None:
    """Percentiles are those of the whole image, also where the first parts have no data."""
    rng = np.random.default_rng(0)
    image = (rng.integers(0, 4000, (5, 150, 200)) * options.pop("scaled", 1)).astype(kind)
    if "nodata" in options:
        image[:, :70, :140] = options["nodata"]
        image[2, 100:103] = options["nodata"]
    assert_tiles_change_nothing(image, 200, (64, 128), channel_axis=0, **options)


def test_percentiles_where_no_pixel_of_the_sample_has_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spit.bands.SAMPLE", 100)
    image = np.random.default_rng(0).integers(1, 4000, (90, 90)).astype(np.uint16)
    image[::10] = 0
    assert_tiles_change_nothing(image, 50, (64,), nodata=0)


def test_volumes() -> None:
    volume = np.random.default_rng(0).integers(0, 256, (20, 40, 37, 2)).astype(np.uint8)
    assert_tiles_change_nothing(volume, 300, (16, 32), channel_axis=-1, spacing=(3, 1, 1))


def test_the_order_of_the_parts_changes_nothing(photo: Photo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = photo("coffee", 300).movedim(0, -1).numpy()
    order = np.random.default_rng(0).permutation(25)
    grow, grown = Parts.grow, []

    def shuffled(parts: Parts, part: int) -> None:
        grown.append(order[part])
        grow(parts, order[part])

    monkeypatch.setattr(Parts, "grow", shuffled)
    assert_tiles_change_nothing(image, 90, (64,))
    assert sorted(grown) == [*range(25)]


def test_a_stopped_run_grows_no_part_twice(photo: Photo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = photo("coffee", 200).movedim(0, -1).numpy()
    path, blocks, count, last = tmp_path / "labels.npy", Parts._blocks, 0, -1

    def counted(*given: Any) -> Any:
        nonlocal count
        count += 1
        return blocks(*given)

    def stop(done: int, _: int) -> None:
        if done == last:
            raise KeyboardInterrupt

    monkeypatch.setattr(Parts, "_blocks", counted)
    for step in (9, 21):  # of 16 parts, each twice
        last = step
        with pytest.raises(KeyboardInterrupt):
            spit.superpixels_tiled(image, 50, tile=64, out=path, progress=stop)
        assert [one.name for one in tmp_path.iterdir()] == ["labels.npy.parts"]
    assert spit.superpixels_tiled(image, 50, tile=64, out=path) == path
    assert count == 16
    np.testing.assert_array_equal(np.load(path), spit.superpixels(image, 50, refine=0))
    assert [one.name for one in tmp_path.iterdir()] == ["labels.npy"]


def test_a_stopped_run_of_other_pixels_is_not_used(photo: Photo, tmp_path: Path) -> None:
    def stop(done: int, _: int) -> None:
        if done == 21:
            raise KeyboardInterrupt

    image = photo("coffee", 200).movedim(0, -1).numpy()
    for n in (150 * 200, 60):  # the cut of the first one goes through all parts
        with pytest.raises(KeyboardInterrupt):
            spit.superpixels_tiled(image, n, tile=64, out=tmp_path / "a.npy", progress=stop)
        image = image[::-1].copy()
    spit.superpixels_tiled(image, 30, tile=128, out=tmp_path / "a.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), spit.superpixels(image, 30, refine=0))


def test_two_runs_do_not_write_one_file(photo: Photo, tmp_path: Path) -> None:
    image = photo("coffee", 100).movedim(0, -1).numpy()
    refused: list[BaseException] = []

    def other(done: int, _: int) -> None:
        with pytest.raises(spit.SpitError, match="another process is writing") as error:
            spit.superpixels_tiled(image, 9, out=tmp_path / "a.npy")
        refused.append(error.value)

    spit.superpixels_tiled(image, 9, out=tmp_path / "a.npy", progress=other)
    assert refused


def test_memory_is_that_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No window is larger than a part, and threads hold one each."""
    class Counted:
        shape, dtype = (640, 640), np.dtype(np.uint8)
        largest = 0

        def __getitem__(self, window: tuple[slice, ...]) -> Any:
            block = np.zeros([one.stop - one.start for one in window], np.uint8)
            Counted.largest = max(Counted.largest, block.size)
            return block

    filled = np.zeros((640, 640), np.int32)
    before = threading.active_count()
    assert spit.superpixels_tiled(Counted(), 10, tile=100, out=filled) is filled
    assert (Counted.largest, filled.max(), threading.active_count()) == (128 * 128, 10, before)


def test_progress_ends_with_all_steps(photo: Photo) -> None:
    seen: list[tuple[int, int]] = []
    spit.superpixels_tiled(photo("coffee", 100)[0].numpy(), 9, tile=64, progress=lambda *steps: seen.append(steps))
    assert seen == [(step, 8) for step in range(1, 9)]


@pytest.mark.parametrize(("given", "error", "told"), [
    ({"n": 0}, ValueError, "n, the number of superpixels, as a whole number of 1 or more, got 0"),
    ({"tile": 0.5}, ValueError, "tile as a whole number"),
    ({"out": np.zeros((3, 3), np.int32)}, ValueError, r"out of int and shape \(90, 80\), got int32 of shape \(3, 3\)"),
    ({"out": "labels.png"}, ValueError, "labels.png"),
    ({"out": "."}, ValueError, "expected out= as an array or a path"),
    ({"mask": np.zeros((90, 80))}, ValueError, "expected mask of bool"),
    ({"to": "rgb"}, ValueError, "expected to to be one of saturated, raw, lab"),
    ({"source": np.zeros((9, 9))}, ValueError, "to='saturated' for floats"),
    ({"source": np.full((9, 9), np.nan), "to": "raw"}, ValueError, "got NaN or infinity in 81 places"),
    ({"source": np.full((9, 9), 7, np.uint16), "nodata": 7}, ValueError, "at least one pixel with data"),
    ({"source": np.full((9, 9), 7, np.uint8), "nodata": 7}, ValueError, "at least one pixel with data"),
    ({"source": np.zeros((9, 9), complex)}, TypeError, "bool, integers or floats, got complex128"),
    ({"source": np.zeros((12, 90, 80), np.uint8)}, ValueError, "channel_axis=0 for an image of 12 bands"),
    ({"source": [[1, 2]]}, TypeError, "a path .*, got list"),
    ({"source": np.zeros((2, 7, 7), np.uint8), "channel_axis": 5}, ValueError, "one of 3 axes, None or 'auto', got 5"),
    ({"source": np.broadcast_to(np.uint8(0), (70_000, 70_000))}, ValueError, "at most 2,147,483,647 pixels"),
])
def test_refusals(given: dict[str, Any], error: type[Exception], told: str, tmp_path: Path,
                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = given.pop("source", np.zeros((90, 80), np.uint8))
    with pytest.raises(error, match=told):
        spit.superpixels_tiled(source, **given)
    assert os.listdir() == []


def test_a_part_is_a_box_of_whole_blocks() -> None:
    image = run.open_source(np.zeros((5, 6), np.uint8))
    assert [run._sides(image, tile) for tile in (1, 64, 65, None)] == [(1, 64, 64), (1, 64, 64), (1, 128, 128),
                                                                      (1, 2048, 2048)]
