from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data

from spit.config import ModelConfig
from spit.model import SpitModel
from spit.predictor import Predictor

PHOTOS = ("astronaut", "coffee", "chelsea")


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes, each of six different cuts of one sample photo of scikit-image, 48 × 40."""
    root = tmp_path_factory.mktemp("labelled")
    for label, name in enumerate(PHOTOS):
        photo = Image.fromarray(getattr(data, name)())
        random = np.random.default_rng(label)
        for index in range(6):
            left, top = (int(random.integers(0, extent - 200)) for extent in photo.size)
            path = root / name / f"{index}.png"
            path.parent.mkdir(exist_ok=True)
            photo.resize((48, 40), box=(left, top, left + 200, top + 160)).save(path)
    return root


@pytest.fixture(scope="session")
def predictor() -> Callable[..., Predictor]:
    """``predictor("voronoi", classes=3)``: a small model of random weights, asked at 32 pixels."""

    def make(tokenizer: str = "superpixel", classes: int = 3, seed: int = 0, square: int = 32,
             **options: object) -> Predictor:
        torch.manual_seed(seed)
        config = ModelConfig(tokenizer=tokenizer, tokenizer_options=options, resolution=4, position_bins=4,
                             gradient_bins=4, width=48, depth=2, heads=3, layer_scale=None,
                             num_classes=classes)
        model = SpitModel(config).eval()
        if classes:
            torch.nn.init.normal_(model.head.linear.weight)
        return Predictor(model, f"small-{tokenizer}", square)

    return make
