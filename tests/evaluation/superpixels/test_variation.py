import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spit.evaluation.superpixels import explained_variation

IMAGES = arrays(np.uint8, st.tuples(st.integers(1, 8), st.integers(1, 8), st.just(3)))


def test_by_hand() -> None:
    """Grey 0, 2, 4, 10 of mean 4: total 16 + 4 + 0 + 36 = 56; pairs of means 1 and 7: between 2·9 + 2·9 = 36."""
    image = np.array([[0.0, 2, 4, 10]])[:, :, None]
    assert explained_variation(image, [[0, 0, 1, 1]]) == pytest.approx(36 / 56)


def test_channels_are_pooled() -> None:
    """Red varies between the regions, green within: (4·1) / (4·1 + 4·9)."""
    image = np.array([[[0.0, 0, 5], [0, 6, 5], [2, 0, 5], [2, 6, 5]]])
    assert explained_variation(image, [[0, 0, 1, 1]]) == pytest.approx(0.1)


@given(IMAGES)
def test_bounds(image: np.ndarray) -> None:
    pixels = np.arange(image.shape[0] * image.shape[1]).reshape(image.shape[:2])
    assert explained_variation(image, pixels) == pytest.approx(1)
    flat = bool((image == image[0, 0]).all())
    assert explained_variation(image, 0 * pixels) == pytest.approx(float(flat))


@given(IMAGES, st.integers(1, 5))
def test_splitting_never_explains_less(image: np.ndarray, parts: int) -> None:
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    coarse, fine = y // 4, (y // 4) * 8 + x % parts
    assert explained_variation(image, fine) >= explained_variation(image, coarse) - 1e-12


def test_types_and_scale_do_not_matter() -> None:
    image = np.random.default_rng(0).integers(0, 256, (6, 7, 3), dtype=np.uint8)
    labels = np.arange(42).reshape(6, 7) // 5
    expected = explained_variation(image, labels)
    assert explained_variation(torch.from_numpy(image).movedim(-1, 0), torch.from_numpy(labels)) == expected
    assert explained_variation(image.astype(float), labels + 9) == pytest.approx(expected)


def test_other_size() -> None:
    with pytest.raises(ValueError, match=r"expected an image of the labels' size \(2, 3\), got \(2, 2\)"):
        explained_variation(np.zeros((2, 2, 3)), np.zeros((2, 3), int))
