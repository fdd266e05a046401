import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from spit import SuperpixelTokenizer, save_model
from spit.cli import main
from spit.config import ModelConfig
from spit.model import SpitModel


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def error(self) -> str:
        """The one line on stderr of a run that was refused."""
        assert (self.code, self.out) == (2, ""), self
        assert self.err.startswith("spit: "), self
        assert self.err.count("\n") == 1, self
        return self.err


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels() -> None:
    """On a machine that has compiled them, no verb says on stderr that it does."""
    SuperpixelTokenizer()(torch.zeros(1, 3, 8, 8))


@pytest.fixture
def spit(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Runs the command line in this process."""

    def run(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def save_tiny(tmp_path: Path) -> Callable[..., Path]:
    """``save_tiny(num_classes=2)`` saves a model of one narrow layer, always the same, and names its folder."""

    def save(**options: Any) -> Path:
        torch.manual_seed(0)
        tiny = {"resolution": 4, "position_bins": 4, "gradients": False, "width": 32, "depth": 1, "heads": 2,
                "layer_scale": None}
        return save_model(SpitModel(ModelConfig(**{**tiny, **options})), tmp_path / "tiny")

    return save


@pytest.fixture
def spit_process() -> Callable[..., Result]:
    """Runs the command line in a process of its own."""

    def run(*arguments: object, **environment: str) -> Result:
        import os

        done = subprocess.run([sys.executable, "-m", "spit.cli", *map(str, arguments)], capture_output=True,
                              text=True, env={**os.environ, **environment}, timeout=240, check=False)
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def photo() -> Callable[..., Path]:
    """Writes a smooth, coloured picture with a little noise."""

    def write(path: Path, width: int = 48, height: int = 40, seed: int = 0) -> Path:
        random = np.random.default_rng(seed)
        y, x = np.mgrid[:height, :width]
        waves = [128 + 90 * np.sin((x * (k + 1) + y * 2 + 17 * seed) / 9) for k in range(3)]
        pixels = np.stack(waves, axis=2) + random.normal(0, 6, (height, width, 3))
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)
        return path

    return write


@pytest.fixture
def names() -> Callable[[Path], list[str]]:
    """Every file below a folder, hidden ones too."""
    return lambda folder: sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
