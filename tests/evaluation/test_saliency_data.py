"""Folders of images and masks, and every odd mask that the module describes."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spit.errors import ImageError
from spit.evaluation.saliency_data import LAYOUTS, MaskFolders, find_samples, read_mask, read_pair

FOLDERS = MaskFolders("photos", "truth")


def write(path: Path, pixels: object, mode: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(np.asarray(pixels, dtype=np.uint8))
    (image.convert(mode) if mode else image).save(path)
    return path


@pytest.mark.parametrize(("images", "masks"), LAYOUTS)
def test_layouts(images: str, masks: str, tmp_path: Path) -> None:
    for name in ("b", "a"):
        write(tmp_path / images / f"{name}.jpg", np.zeros((4, 6, 3)))
        write(tmp_path / masks / f"{name}.png", np.eye(4, 6) * 255)
    write(tmp_path / masks / "more.png", np.eye(4, 6) * 255)  # a mask without an image hurts nobody
    samples = find_samples(tmp_path)
    assert [sample.name for sample in samples] == ["a", "b"]
    image, truth = read_pair(samples[0])
    assert image.shape == (3, 4, 6)
    assert truth.foreground.sum() == 4
    assert truth.counted.all()


def test_folders_of_other_names_and_deeper_ones(tmp_path: Path) -> None:
    write(tmp_path / "photos" / "x" / "a.jpg", np.zeros((2, 2, 3)))
    write(tmp_path / "truth" / "x" / "a.bmp", np.zeros((2, 2)))
    assert find_samples(tmp_path, FOLDERS)[0].name == "x/a"
    with pytest.raises(ImageError, match="--image-folder and --mask-folder"):
        find_samples(tmp_path)
    with pytest.raises(ValueError, match="go together"):
        find_samples(tmp_path, MaskFolders("photos"))
    write(tmp_path / "photos" / "b.jpg", np.zeros((2, 2, 3)))
    with pytest.raises(ImageError, match=r"b\.jpg: expected its mask"):
        find_samples(tmp_path, FOLDERS)
    with pytest.raises(ImageError, match="there is none"):
        find_samples(tmp_path / "nowhere")


@pytest.mark.parametrize(("values", "foreground", "counted"), [
    ([[0, 255, 127, 128]], [0, 1, 0, 1], [1, 1, 1, 1]),  # soft edges
    ([[0, 1, 1, 0]], [0, 1, 1, 0], [1, 1, 1, 1]),  # 0 and 1
    ([[1, 2, 3, 2]], [1, 0, 0, 0], [1, 1, 0, 1]),  # a trimap
    ([[0, 0, 0, 0]], [0, 0, 0, 0], [1, 1, 1, 1]),
    ([[255, 255, 255, 255]], [1, 1, 1, 1], [1, 1, 1, 1]),
])
def test_values(values: object, foreground: list[int], counted: list[int], tmp_path: Path) -> None:
    truth = read_mask(write(tmp_path / "m.png", values), (1, 4))
    assert truth.foreground[0].tolist() == [bool(value) for value in foreground]
    assert truth.counted[0].tolist() == [bool(value) for value in counted]


def test_colour_palette_and_one_bit(tmp_path: Path) -> None:
    red = np.zeros((2, 2, 3))
    red[0, 0] = (200, 0, 0)
    for mode in (None, "RGBA", "P"):
        assert read_mask(write(tmp_path / "m.png", red, mode), (2, 2)).foreground.tolist() == [[True, False],
                                                                                               [False, False]]
    assert read_mask(write(tmp_path / "m.png", np.eye(2) * 255, "1"), (2, 2)).foreground.tolist() == [[True, False],
                                                                                                    [False, True]]


def test_other_sizes(tmp_path: Path) -> None:
    path = write(tmp_path / "m.png", np.kron(np.eye(2), np.ones((3, 3))) * 255)
    assert read_mask(path, (2, 2)).foreground.tolist() == [[True, False], [False, True]]
    assert read_mask(path, (12, 12)).foreground.sum() == 72
    with pytest.raises(ImageError, match="of that aspect, got 6 × 6"):
        read_mask(path, (2, 3))


def test_values_that_mean_nothing(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="got values 0, 1, 2"):
        read_mask(write(tmp_path / "m.png", [[0, 1, 2]]), (1, 3))
    (tmp_path / "m.png").write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"m\.png"):
        read_mask(tmp_path / "m.png", (1, 3))
