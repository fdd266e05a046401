"""Decoded photos kept for the next run."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from spit.data import decoded
from spit.data.decoded import kept_on_device, to_device
from spit.data.photos import Photos


@pytest.fixture
def photos(tmp_path: Path) -> Photos:
    for i in range(5):
        folder = tmp_path / "photos" / f"class{i % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((20 + i, 30, 3), 40 * i, np.uint8)).save(folder / f"{i}.png")
    return Photos([tmp_path / "photos"], 8, labelled=True)


def test_the_second_time_nothing_is_decoded(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoded, "PIECE", 2)
    first = kept_on_device(photos, "cpu", 0, tmp_path / "kept")
    monkeypatch.setattr(decoded, "to_device", lambda *_: pytest.fail("decoded again"))
    second = kept_on_device(photos, "cpu", 0, tmp_path / "kept")
    for before, after in zip(first, second, strict=True):
        assert before.dtype == after.dtype
        assert torch.equal(before, after)
    assert sorted(first[2].tolist()) == [0, 0, 0, 1, 1]


def test_another_side_and_other_photos_have_files_of_their_own(photos: Photos, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept_on_device(photos, "cpu", 0, kept)
    assert kept_on_device(Photos([tmp_path / "photos"], 6, labelled=True), "cpu", 0, kept)[0].shape == (5, 3, 6, 6)
    assert len(list(kept.iterdir())) == 4
    (tmp_path / "photos" / "class0" / "0.png").unlink()
    assert len(kept_on_device(Photos([tmp_path / "photos"], 8, labelled=True), "cpu", 0, kept)[0]) == 4


def test_overwritten_photos_are_decoded_again(photos: Photos, tmp_path: Path) -> None:
    before = kept_on_device(photos, "cpu", 0, tmp_path / "kept")[0]
    for path in (tmp_path / "photos").rglob("*.png"):
        Image.fromarray(np.full((20, 30, 3), 255, np.uint8)).save(path)
    after = kept_on_device(Photos([tmp_path / "photos"], 8, labelled=True), "cpu", 0, tmp_path / "kept")[0]
    assert not torch.equal(before, after)
    assert after.min() == 255


def test_data_sets_of_equal_names_do_not_share(tmp_path: Path) -> None:
    for value in (0, 255):
        folder = tmp_path / f"{value}/cats"
        folder.mkdir(parents=True)
        Image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(folder / "a.bmp")
        os.utime(folder / "a.bmp", ns=(0, 0))
        images, _, _ = kept_on_device(Photos([tmp_path / f"{value}"], 8), "cpu", 0, tmp_path / "kept")
        assert images.unique().tolist() == [value]


@pytest.mark.parametrize("locks", [True, False])
def test_processes_decode_once_and_never_read_half(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: bool
) -> None:
    """Locks hold between threads of a process too; without locks each decodes, and no file is written by two."""
    if not locks:
        monkeypatch.setattr("spit.locks.fcntl", None)
    monkeypatch.setattr(decoded, "PIECE", 1)
    decodings: list[None] = []

    def slow(*given: Any) -> tuple[Tensor, Tensor, Tensor]:
        decodings.append(None)
        time.sleep(0.1)
        return to_device(*given)

    monkeypatch.setattr(decoded, "to_device", slow)
    expected = to_device(photos, "cpu", 0)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: kept_on_device(photos, "cpu", 0, tmp_path / "kept"), range(4)))
    assert (len(decodings) == 1) == locks
    for found in (*answers, kept_on_device(photos, "cpu", 0, tmp_path / "kept")):
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_a_write_that_was_cut_short_is_not_read(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "write_array_header_1_0", break_off)
        with pytest.raises(OSError, match="no space"):
            kept_on_device(photos, "cpu", 0, tmp_path / "kept")
    assert [path.suffixes for path in (tmp_path / "kept").iterdir()] == [[".rest", ".npy"]]
    assert len(kept_on_device(photos, "cpu", 0, tmp_path / "kept")[0]) == 5
