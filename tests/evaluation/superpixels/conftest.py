from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data
from skimage.transform import resize


@pytest.fixture(scope="session")
def photo_pixels() -> np.ndarray:
    """A cat, 60×90."""
    return (255 * resize(data.chelsea(), (60, 90), anti_aliasing=True)).round().astype(np.uint8)


@pytest.fixture
def folder(tmp_path: Path, photo_pixels: np.ndarray) -> Callable[[int], Path]:
    """``folder(3)``: images/ and labels/ of three pictures, cut from the cat, each with two label maps."""

    def write(count: int) -> Path:
        (tmp_path / "images").mkdir()
        (tmp_path / "labels").mkdir()
        for index in range(count):
            picture = np.roll(photo_pixels, 13 * index, axis=1)
            Image.fromarray(picture).save(tmp_path / "images" / f"{index}.png")
            for human, limit in enumerate((110, 140), start=1):
                truth = (picture.mean(axis=2) > limit).astype(np.uint8)
                Image.fromarray(truth).save(tmp_path / "labels" / f"{index}_{human}.png")
        return tmp_path

    return write
