import numpy as np
import pytest
import torch

from spit.attribution.drawing import draw_map, occlusion_rows, panel_row
from spit.predictor import Predictor


def test_bright_is_much_and_dark_is_little(images):
    values = torch.linspace(0, 1, 40).expand(40, 40)
    pixels = np.asarray(draw_map(images[0] * 0, values)).sum(2).mean(0)
    assert (np.diff(pixels) >= 0).all()
    assert pixels[-1] > 10 * max(pixels[0], 1)
    assert draw_map(images[0], torch.zeros(40, 40)).size == (40, 40)  # nothing to tell is no error
    with pytest.raises(ValueError, match=r"got \(3, 3\)"):
        draw_map(images[0], torch.zeros(3, 3))


def test_rows(small, images):
    prediction, values = Predictor(small())(images[0], crop=False), torch.rand(40, 40)
    row = panel_row(prediction, {"flow": values, "mine": values}, "model", "class")
    assert [tile.caption for tile in row] == ["model", "Tokens", "Attention flow", "mine"]
    strips = occlusion_rows(prediction, values, 1, "cat 50.0%")
    assert [len(strip) for strip in strips] == [4, 4]
    assert strips[0][0].caption == "Without the top 5%"
    assert strips[1][3].caption == "The top 50% alone"
    assert strips[0][0].detail.startswith("cat 50.0%, now ")
