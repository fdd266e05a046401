"""``import spit.timm``: spit's architectures by timm.create_model."""

from typing import Any

import pytest
import torch

LIBRARIES: list[torch.library.Library] = []  # kept, or torch forgets what they define


@pytest.fixture
def timm() -> Any:
    """timm, or a skip."""
    try:
        return pytest.importorskip("timm", exc_type=ImportError)
    except RuntimeError:  # torchvision, which timm imports, does not load its operators beside a CPU build of torch
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        LIBRARIES.append(library)
        return pytest.importorskip("timm", exc_type=ImportError)


def test_timm_makes_our_models(timm: Any) -> None:
    import spit.timm

    assert "spit_tiny_16" in timm.list_models("spit_*")
    assert spit.timm.spit_tiny_16.__name__ == "spit_tiny_16"
    model = timm.create_model("spit_tiny_16", num_classes=5, drop_path_rate=0.1, in_chans=3)
    assert isinstance(model, spit.SpitModel)
    assert (model.config.drop_path, model.config.num_classes) == (0.1, 5)
    with torch.no_grad():
        assert model.eval()(torch.rand(1, 3, 64, 64)).shape == (1, 5)
        assert timm.create_model("spit_tiny_16", pretrained=True)(torch.rand(1, 3, 64, 64)).shape == (1, 1000)
