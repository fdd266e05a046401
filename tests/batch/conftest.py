import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

pytest.importorskip("pyarrow")

from spit import save_model
from spit.config import ModelConfig
from spit.model import SpitModel
from spit.predictor import Predictor, load

Corpus = Callable[..., Path]


def picture(seed: int, width: int = 40, height: int = 32) -> bytes:
    """A smooth, coloured PNG with a little noise."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [128 + 90 * np.sin((x * (k + 1) + y * 2 + 17 * seed) / 9) for k in range(3)]
    pixels = np.stack(waves, axis=2) + random.normal(0, 6, (height, width, 3))
    file = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """``corpus(60, broken=10)`` writes a folder of images, every tenth of them broken."""

    def write(count: int, broken: int = 10, name: str = "in") -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for index in range(count):
            bad = broken and index % broken == 3
            (folder / f"{index:04d}.png").write_bytes(picture(index)[:60] if bad else picture(index))
        return folder

    return write


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model of one narrow layer, always the same."""
    torch.manual_seed(0)
    config = ModelConfig(resolution=4, position_bins=4, gradients=False, width=32, depth=1, heads=2, layer_scale=None,
                         num_classes=7)
    return save_model(SpitModel(config), tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def predictor(tiny: Path) -> Predictor:
    return load(tiny, "cpu", 32)
