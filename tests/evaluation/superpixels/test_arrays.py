import numpy as np
import pytest
import torch

from spit.evaluation.superpixels.arrays import as_colors, as_labels


@pytest.mark.parametrize("labels", [[[7, 7], [3, 9]], [[-1, -1], [-5, 10**12]], [[1, 1], [0, 2]]])
def test_labels_become_consecutive_in_their_order(labels: list[list[int]]) -> None:
    assert as_labels(labels).tolist() == [[1, 1], [0, 2]]
    assert as_labels(torch.tensor(labels)).tolist() == [[1, 1], [0, 2]]


def test_labels_given_are_not_changed() -> None:
    given = np.array([[5, 7]])
    as_labels(given)[:] = 0
    assert given.tolist() == [[5, 7]]


@pytest.mark.parametrize("labels", [np.zeros((2, 2)), np.zeros(4, int), np.zeros((0, 3), int)])
def test_no_label_map(labels: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"expected labels of integers, \(H, W\), got"):
        as_labels(labels)


def test_colors() -> None:
    image = np.array([[[255, 0, 51]]], np.uint8)
    assert as_colors(image).tolist() == [[[1.0, 0.0, 0.2]]]
    assert as_colors(torch.from_numpy(image).movedim(-1, 0)).tolist() == [[[1.0, 0.0, 0.2]]]
    assert as_colors(image / 255).tolist() == [[[1.0, 0.0, 0.2]]]
    with pytest.raises(ValueError, match="expected an image"):
        as_colors(np.zeros((3, 3)))
