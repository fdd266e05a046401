"""Folders of images and masks, every odd mask, figures worked out by hand, and the page."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from spit.errors import ImageError
from spit.evaluation.masks import (
    BETA2,
    FALSE_NEGATIVE,
    FALSE_POSITIVE,
    LAYOUTS,
    PAPER_BETA2,
    TRUE_POSITIVE,
    MaskFolders,
    Scores,
    Truth,
    best_threshold,
    choose,
    draw_errors,
    f_measure,
    find_samples,
    read_mask,
    read_pair,
    score,
)

FOLDERS = MaskFolders("photos", "truth")
TRUTH = Truth(np.array([[True, True, False, False]]), np.ones((1, 4), dtype=bool))


def f_of(scores: Scores, beta2: float = BETA2) -> np.ndarray:
    return f_measure(scores.positives, scores.hits, scores.foreground, beta2)



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
    with pytest.raises(ImageError, match="no such path exists"):
        find_samples(tmp_path / "nowhere")
    with pytest.raises(ImageError, match=r"b\.jpg: expected a folder of images and masks, got a file$"):
        find_samples(tmp_path / "photos" / "b.jpg")


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


def test_a_hand_worked_image() -> None:
    """One hit, one miss, one false alarm: IoU 1/3, accuracy 1/2; P = R = F = 1/2 at the mask's threshold."""
    soft = np.array([[1.0, 0.2, 0.6, 0.0]], dtype=np.float32)
    scores = score(soft, soft > 0.5, TRUTH)
    assert (scores.iou, scores.accuracy, scores.foreground) == (1 / 3, 0.5, 2)
    f = f_of(scores)
    assert f[127] == pytest.approx(0.5)  # threshold .5: two positives, one hit
    assert f[0] == pytest.approx(1.3 * 0.5 * 1 / (0.3 * 0.5 + 1))  # all positive: P = 1/2, R = 1
    assert f[254] == pytest.approx(1.3 * 1 * 0.5 / (0.3 * 1 + 0.5))  # only the first: P = 1, R = 1/2
    assert f_of(scores, PAPER_BETA2)[254] == pytest.approx((10 / 9) * 0.5 / (1 / 9 + 0.5))
    assert (scores.positives[0], scores.positives[51], scores.positives[254]) == (4, 2, 1)  # .2 < 51/254


def test_perfect_empty_and_inverted() -> None:
    soft = TRUTH.foreground.astype(np.float32)
    perfect, inverted = score(soft, soft > 0.5, TRUTH), score(1 - soft, soft < 0.5, TRUTH)
    assert (perfect.iou, perfect.accuracy, f_of(perfect)[1:].min()) == (1, 1, pytest.approx(1))
    assert (inverted.iou, inverted.accuracy, f_of(inverted)[1:].max()) == (0, 0, 0)
    nothing = score(np.zeros((1, 4), np.float32), np.zeros((1, 4), bool), TRUTH)
    assert (nothing.iou, nothing.accuracy, f_of(nothing)[1]) == (0, 0.5, 0)


def test_pixels_that_do_not_count() -> None:
    truth = Truth(TRUTH.foreground, np.array([[True, False, False, True]]))
    soft = np.array([[0.9, 0.1, 0.9, 0.1]], dtype=np.float32)
    scores = score(soft, soft > 0.5, truth)
    assert (scores.iou, scores.accuracy, scores.foreground) == (1, 1, 1)


def test_the_mean_comes_before_the_maximum() -> None:
    first, second = np.array([0.9, 0.5, 0.0]), np.array([0.0, 0.5, 0.8])
    assert best_threshold([first, second]) == 1  # each alone has its own, better one


def test_f_without_a_hit_is_zero() -> None:
    assert f_measure(np.array([0, 3]), np.array([0, 0]), 0).tolist() == [0, 0]


def test_who_is_on_the_page() -> None:
    scores = {f"{index}": index / 10 for index in range(10)}
    chosen = choose(scores, across=2)
    assert [[name for name, _ in row] for row in chosen] == [["9", "8"], ["5", "4"], ["1", "0"]]
    assert choose({"b": 0.5, "a": 0.5}) == [[("a", 0.5), ("b", 0.5)]]


def test_the_three_colours() -> None:
    mask = np.array([[True, True, False, False, True]])
    truth = Truth(np.array([[True, False, True, False, True]]), np.array([[True, True, True, True, False]]))
    pixels = np.asarray(draw_errors(torch.zeros(3, 1, 5, dtype=torch.uint8), mask, truth))
    for place, color in enumerate((TRUE_POSITIVE, FALSE_POSITIVE, FALSE_NEGATIVE)):
        assert pixels[0, place].tolist() == [round(0.7 * value) for value in color]
    assert pixels[0, 3].tolist() == pixels[0, 4].tolist() == [0, 0, 0]
