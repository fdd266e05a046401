"""Libraries beside torch's CPU build: torchvision, which timm and open_clip import, does not load its operators there.

No transformer needs them, but torchvision imports only if two of them are declared. Used where torchvision is installed
without them; ``make test`` has it in a folder of its own (tests/adapters.txt).
"""

import warnings
from functools import cache
from importlib import import_module
from typing import Any

import pytest
import torch

LIBRARIES: list[torch.library.Library] = []  # kept, or torch forgets what they declare


@cache
def declare_operators() -> None:
    """Let torchvision be imported, if it is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import_module("torchvision")
        except ModuleNotFoundError:
            pass
        except RuntimeError:
            LIBRARIES.append(torch.library.Library("torchvision", "FRAGMENT"))
            for name in ("nms", "qnms"):
                LIBRARIES[-1].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def load(name: str) -> Any:
    """A module of another library, or a skip."""
    declare_operators()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, exc_type=ImportError)
