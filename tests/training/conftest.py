import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from spit.training.recipe import Recipe

TINY = """
[model]
name = "spit_tiny_16.paper"
[model.options]
depth = 2
width = 24
heads = 2
layer_scale = 0.5
tokenizer_options = { levels = 2 }
drop_path = 0.3
token_budget = 20
[data]
train = ["PHOTOS"]
validation = ["PHOTOS"]
side = 36
size = 32
workers = 0
[optimization]
epochs = 4
batch = 8
lr = 1e-2
warmup = 1
ema = 0.9
smoothing = 0.1
[run]
log = 1
checkpoint = 4
validate = 2
"""


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """In all of these tests."""


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes of ten photos: waves, and coarser waves."""
    root = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(0)
    for label, scale in (("coarse", 9), ("fine", 3)):
        (root / label).mkdir()
        for index in range(10):
            y, x = np.mgrid[:40, : 34 + index]
            waves = [128 + 90 * np.sin((x * (k + 1) + y * 2 + 17 * index) / scale) for k in range(3)]
            pixels = np.stack(waves, axis=2) + random.normal(0, 6, (*x.shape, 3))
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(root / label / f"{index}.png")
    return root


@pytest.fixture
def recipe_file(photos: Path, tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.replace("PHOTOS", str(photos)))
    return path


@pytest.fixture
def recipe(recipe_file: Path) -> Callable[..., Recipe]:
    """``recipe("optimization.epochs=1")``: the tiny recipe with changes."""
    return lambda *changes: Recipe.read(recipe_file, changes)


@pytest.fixture
def process() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts Python on one thread, with what it says in a pipe; ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object, **options: Any) -> "subprocess.Popen[str]":
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        started.append(subprocess.Popen([sys.executable, *map(str, arguments)], env=environment, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options))
        return started[-1]

    yield start
    for child in started:
        child.terminate()  # torchrun ends its processes then, which are in sessions of their own
        try:
            child.wait(timeout=40)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()
