"""What several tests share: photographs, adversarial textures, a check of connectivity, ../shared."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import settings
from PIL import Image
from skimage import data, measure
from torch import Tensor

from libraries import load

SHARED = Path(__file__).parents[2] / "shared"

settings.register_profile("same", derandomize=True, deadline=None)  # a machine's examples are every machine's
settings.load_profile("same")

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # Triton reads it when a kernel is defined


@pytest.fixture(scope="session")
def photo() -> Callable[[str, int], Tensor]:
    """``photo("coffee", 224)``: the middle square of a sample image of scikit-image, (3, 224, 224) uint8."""

    def load(name: str, size: int) -> Tensor:
        image = Image.fromarray(getattr(data, name)())
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        square = image.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BICUBIC)
        return torch.from_numpy(np.array(square)).movedim(-1, 0).contiguous()

    return load


@pytest.fixture(scope="session")
def shared_folder() -> Callable[[str], Path]:
    """``shared_folder("data/bsds500")``, or a skip that says what is missing."""

    def find(name: str) -> Path:
        if not (SHARED / name).is_dir():
            pytest.skip(f"no {SHARED / name}")
        return SHARED / name

    return find


@pytest.fixture(scope="session")
def pieces() -> Callable[[Tensor], int]:
    """How many 4-connected pieces of one label a map (H, W) has; scikit-image counts them, not spit."""
    return lambda labels: int(measure.label(labels.numpy(), background=-1, return_num=True, connectivity=1)[1])


@pytest.fixture(scope="session")
def texture() -> Callable[[int, tuple[int, ...], int, int], Tensor]:
    """``texture(seed, (B, C, H, W), low, high)``: int64 patterns with many ties; the seed picks which."""

    def draw(seed: int, shape: tuple[int, ...], low: int, high: int) -> Tensor:
        rng = np.random.default_rng(seed)
        y, x = np.mgrid[: shape[-2], : shape[-1]]
        levels = rng.integers(low, high + 1, (2, *shape[:-2], 1, 1))
        few = rng.integers(low, high + 1, 4)
        kinds = [
            lambda: np.broadcast_to(levels[0], shape),  # flat, a value for each channel
            lambda: np.zeros(shape, np.int64) + (low + high + 1) // 2,  # no direction for a cosine
            lambda: np.where((y + x) % 2 == 0, levels[0], levels[1]),  # checkerboard
            lambda: np.where(y % 2 == 0, levels[0], levels[1]),  # stripes
            lambda: np.where(x // 2 % 2 == 0, levels[0], levels[1]),
            lambda: rng.choice([low, high], shape),  # two values
            lambda: few[rng.integers(0, 4, shape)],  # two bits
            lambda: low + (high - low) * (y + x) // (shape[-2] + shape[-1]) + 0 * levels[0],  # gradient
            lambda: np.clip(levels[0] + rng.integers(-2, 3, shape), low, high),  # nearly flat
            lambda: np.where((y == 0) & (x == 0), levels[0], levels[1]),  # one outlier
            lambda: rng.integers(low, high + 1, shape),  # noise
        ]
        return torch.from_numpy(np.array(kinds[seed % len(kinds)]()))

    return draw


@pytest.fixture(scope="session")
def timm() -> Any:
    """timm, or a skip."""
    return load("timm")


@pytest.fixture
def restored_parts() -> Iterator[None]:
    """What a test registers is gone after it."""
    from spit.parts import BACKBONES, FEATURES, TOKENIZERS

    with ExitStack() as stack:
        for parts in (TOKENIZERS, FEATURES, BACKBONES):
            dict(parts)  # imports the modules of spit's own
            stack.enter_context(patch.dict(parts._classes))
        yield


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def torch_threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny tensors on a busy machine: a second thread is what one waits for."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
