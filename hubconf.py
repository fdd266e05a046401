"""Entry points of torch.hub: ``torch.hub.load("owner/spit", "spit_tiny_16", pretrained=True)``."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if find_spec("spit") is None:  # torch.hub puts this folder on the path, not src
    sys.path.insert(0, str(Path(__file__).parent / "src"))

import torch

import spit

dependencies = ["torch", "numpy", "numba", "PIL", "safetensors"]


def _entry_point(name: str) -> Callable[..., torch.nn.Module]:
    def create(pretrained: bool = False, **options: Any) -> torch.nn.Module:
        return spit.create_model(name, pretrained, **options)

    create.__doc__ = f"{name}; pretrained=True takes the weights that come with spit, if it has any."
    return create


def predictor(source: str = "spit_tiny_16", **options: Any) -> spit.Predictor:
    """A model that is ready to answer; see spit.load."""
    return spit.load(source, **options)


globals().update({name: _entry_point(name) for name in spit.list_models()})
