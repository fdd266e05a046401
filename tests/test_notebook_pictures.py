"""What notebooks show of predictions, partitions and masks."""

import io
from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import spit


@pytest.fixture(scope="module")
def prediction() -> spit.Prediction:
    from skimage import data

    image = Image.fromarray(data.chelsea()).resize((150, 100), Image.Resampling.BICUBIC)
    return spit.load("spit_tiny_16", device="cpu")(torch.from_numpy(np.array(image)).movedim(-1, 0))


def opened(data: bytes | None) -> Image.Image:
    assert data is not None
    return Image.open(io.BytesIO(data))


def test_pictures_of_a_notebook(prediction: spit.Prediction) -> None:
    for thing in (prediction, prediction.partition, prediction.segment()):
        picture = opened(thing._repr_png_())
        assert picture.format == "PNG"
        assert min(picture.size) > 200
        assert len(np.unique(np.asarray(picture.convert("L")))) > 10


def test_pictures_of_batches(photo: Callable[[str, int], Tensor]) -> None:
    images = [photo("coffee", side) for side in (40, 64, 48, 40, 40, 56)]
    one, many = (spit.create_model("spit_tiny_16", num_classes=classes).eval() for classes in (0, 10))
    seen = spit.Predictor(one)(images)
    assert opened(seen._repr_png_()).width > opened(spit.Predictor(many)(images[:1])._repr_png_()).width
    assert opened(seen.partition._repr_png_()).width > opened(seen.partition[0]._repr_png_()).width
    found = seen.segment(method="cut")
    assert opened(found._repr_png_()).width > 4 * 200


def test_pictures_of_other_channels() -> None:
    tokenizer = spit.PatchTokenizer(8)
    part = tokenizer(torch.rand(2, 5, 32, 32))
    assert opened(part._repr_png_()).width > 300


def test_show_outlines_the_tokens_of_one_image(prediction: spit.Prediction) -> None:
    picture = prediction.show()
    changed = (np.asarray(picture) != prediction.images[0].movedim(0, -1).numpy()).any(2)
    assert changed.any()
    assert not changed[~prediction.partition.boundaries()[0].numpy()].any()
    with pytest.raises(IndexError, match="from 0 to 0"):
        prediction.show(1)
