"""Decoded photos kept for the next run."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from spit.data import decoded
from spit.data.decoded import kept_on_device
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


def test_a_write_that_was_cut_short_is_not_read(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "open_memmap", break_off)
        with pytest.raises(OSError, match="no space"):
            kept_on_device(photos, "cpu", 0, tmp_path / "kept")
    assert len(kept_on_device(photos, "cpu", 0, tmp_path / "kept")[0]) == 5
