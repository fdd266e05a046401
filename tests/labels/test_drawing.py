"""spit.draw: lines between regions, and their mean colours."""

import numpy as np
import pytest
from skimage import color, data, img_as_float

import spit

HALVES = np.repeat([[1, 1, 1, 2, 2, 2]], 2, 0)


@pytest.mark.parametrize(("thickness", "columns"), [(1, [2]), (2, [2, 3]), (3, [1, 2, 3]), (9, [0, 1, 2, 3, 4, 5])])
def test_lines(thickness: int, columns: list[int]) -> None:
    drawn = spit.draw(np.zeros((2, 6), bool), HALVES, color=(9, 8, 7), thickness=thickness)
    assert sorted(set(np.argwhere(drawn[..., 0] == 9)[:, 1].tolist())) == columns
    assert drawn[0, 2].tolist() == [9, 8, 7]


def test_the_boundaries_of_a_partition() -> None:
    image = data.coffee()
    labels = spit.superpixels(image, n=80)
    drawn = spit.draw(image, labels, color=(1, 2, 3))
    edges = spit.Partition.from_labels(labels).boundaries().numpy()[0]
    assert np.array_equal(drawn[~edges], image[~edges])
    assert (drawn[edges] == (1, 2, 3)).all()
    assert np.array_equal(drawn, spit.draw(img_as_float(image), labels, color=(1, 2, 3)))
    assert np.array_equal(image, data.coffee())


def test_mean_colours() -> None:
    image = data.coffee()
    labels = spit.superpixels(image, n=80)
    labels[:50, :50] = 0
    expected = color.label2rgb(labels, image, kind="avg", bg_label=-1)
    drawn = spit.draw(image, labels, color=None, fill=True)
    assert np.array_equal(drawn[labels == 0], image[labels == 0])
    assert np.abs(drawn[labels > 0].astype(int) - expected[labels > 0]).max() <= 1
    assert spit.draw(np.zeros((1, 1)), [[0]], fill=True).tolist() == [[[0, 0, 0]]]


@pytest.mark.parametrize(("image", "options", "error", "message"), [
    (np.zeros((2, 6, 4), np.uint8), {}, ValueError, r"1 or 3 channels, got 4; image\[..., :3\]"),
    (np.zeros((2, 5), np.uint8), {}, ValueError, r"labels' shape \(2, 6\)"),
    (np.zeros((2, 6), np.int32), {}, TypeError, r"floats in \[0, 1\], got int32"),
    (np.full((2, 6), 7.0), {}, ValueError, r"float images in \[0, 1\]"),
    (np.zeros((2, 6)), {"thickness": 0}, ValueError, "at least 1 pixel, got 0"),
])
def test_errors(image: np.ndarray, options: dict[str, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        spit.draw(image, HALVES, **options)
